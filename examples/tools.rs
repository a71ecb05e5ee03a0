//! A command line over a live engine: `cargo run --example tools -- list --profile execute`.

use std::{
    env,
    error::Error as StdError,
    ffi::OsString,
    fmt::Write as _,
    io::{self, Write},
    process::ExitCode,
};

use rmcp::model::{JsonObject, ServerResult, Tool};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use tower_algenta::{
    CallOutcome, Endpoint, EngineClient, Error, HiddenFields, Profile, ToolRequest, ToolResponse, Toolset,
};

const USAGE: &str = "\
Lists and calls the tools of an Algenta engine, as an agent under a profile may.

    tools list                what there is, from which profile on, and which fields no agent sees
    tools call NAME [JSON]    calls a tool; JSON are its arguments, an object

    --profile NAME    observe (default), govern, execute or full
    --url URL         the engine; else ALGENTA_BASE_URL, else http://localhost:8000/mcp
    --json            prints JSON; for `list` the tools as an agent sees them

The token is ALGENTA_API_KEY. Exit codes: 0 result or receipt, 3 denied by a gate, 4 not in the profile,
5 invalid arguments, 6 execution failed, 7 outcome unknown, 8 not sent, 1 any other failure, 2 wrong usage.
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = env::args().skip(1).collect();
    let mut out = io::stdout();
    match run(arguments, |name| env::var_os(name), &mut out).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("tools: {error}");
            ExitCode::from(2)
        }
    }
}

/// The whole program: its arguments, its environment, its output, its exit code. An error is one of usage.
pub(crate) async fn run(
    arguments: Vec<String>,
    environment: impl FnMut(&str) -> Option<OsString>,
    out: &mut impl Write,
) -> Result<u8, Box<dyn StdError>> {
    let Some(command) = Command::read(arguments)? else {
        out.write_all(USAGE.as_bytes())?;
        return Ok(0);
    };
    let endpoint = Endpoint::resolve_with(command.url.as_deref(), environment)?;
    let (text, code) = match command.run(endpoint).await {
        Ok(done) => (if command.json { pretty(&done.json) } else { done.text }, 0),
        Err(error) => {
            let (outcome, code) = outcome_of(&error);
            (if command.json { pretty(&described(&error, outcome)) } else { format!("{outcome}: {error}\n") }, code)
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(code)
}

struct Command {
    action: Action,
    profile: Profile,
    url: Option<String>,
    json: bool,
}

enum Action {
    List,
    Call(String, JsonObject),
}

/// What came out: for a person, and for a program.
struct Done {
    text: String,
    json: Value,
}

impl Command {
    /// Reads the command line; `None` asks for the usage.
    fn read(arguments: Vec<String>) -> Result<Option<Self>, Box<dyn StdError>> {
        let (mut words, mut profile, mut url, mut json) = (Vec::new(), Profile::default(), None, false);
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            // `--profile=execute` is `--profile execute`.
            let (option, value) = match argument.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            let mut value = || value.clone().or_else(|| arguments.next()).ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--profile" => profile = value()?.parse()?,
                "--url" => url = Some(value()?),
                "--json" => json = true,
                "--help" | "-h" => return Ok(None),
                option if option.starts_with('-') => return Err(format!("unknown option {option}").into()),
                _ => words.push(option),
            }
        }
        let mut words = words.into_iter();
        let action = match words.next().as_deref() {
            None => return Ok(None),
            Some("list") => Action::List,
            Some("call") => {
                let name = words.next().ok_or("call needs the name of a tool")?;
                let arguments = words.next().map_or(Ok(JsonObject::new()), |text| serde_json::from_str(&text));
                Action::Call(name, arguments.map_err(|error| format!("the arguments are no JSON object: {error}"))?)
            }
            Some(other) => return Err(format!("unknown command {other}").into()),
        };
        match words.next() {
            Some(extra) => Err(format!("one argument too many: {extra}").into()),
            None => Ok(Some(Self { action, profile, url, json })),
        }
    }

    async fn run(&self, endpoint: Endpoint) -> Result<Done, Error> {
        let client = EngineClient::connect(endpoint).await?;
        let tools = Toolset::builder().profile(self.profile).service(client.clone()).build();
        let done = match &self.action {
            Action::List => {
                let listed = tools.list().await?;
                let text = table(&listed, &advertised(&client).await?);
                Ok(Done { text, json: json!(listed) })
            }
            Action::Call(name, arguments) => tools.call(name.clone(), arguments.clone()).await.map(came_of),
        };
        client.close().await?;
        done
    }
}

/// The tools as the engine advertises them, ungoverned.
async fn advertised(client: &EngineClient) -> Result<Vec<Tool>, Error> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    loop {
        let ToolResponse::List(page) = client.clone().oneshot(ToolRequest::list_from(cursor)).await? else {
            return Err(Error::Upstream("the engine answered a list with something else".into()));
        };
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
}

/// One line for each tool: its name, the first profile that has it, and the fields that no agent sees.
fn table(listed: &[Tool], advertised: &[Tool]) -> String {
    let hidden = HiddenFields::new();
    let width = listed.iter().map(|tool| tool.name.len()).max().unwrap_or_default().max(4);
    let mut text = format!("{:width$}  {:7}  HIDDEN FIELDS\n", "TOOL", "PROFILE");
    for tool in listed {
        let profile = Profile::first_with(&tool.name).unwrap_or(Profile::Full);
        let fields: Vec<_> = advertised
            .iter()
            .filter(|other| other.name == tool.name)
            .filter_map(|other| other.input_schema.get("properties")?.as_object())
            .flat_map(JsonObject::keys)
            .filter(|field| hidden.hides(field))
            .map(String::as_str)
            .collect();
        let fields = if fields.is_empty() { "-".to_owned() } else { fields.join(", ") };
        let _ = writeln!(text, "{:width$}  {profile:7}  {fields}", tool.name);
    }
    text
}

/// A call that ended well.
fn came_of(outcome: CallOutcome) -> Done {
    if let Some(receipt) = outcome.receipt() {
        let text = format!("receipt: {} for {}\n", receipt.status(), receipt.decision_id());
        return Done { text, json: json!({"outcome": "receipt", "receipt": receipt.fields()}) };
    }
    let text = outcome.result().map(|result| result.content.iter().filter_map(|block| block.as_text()));
    let text = text.into_iter().flatten().map(|text| text.text.clone() + "\n").collect();
    Done { text, json: json!({"outcome": "result", "result": ServerResult::from(outcome.into_response())}) }
}

/// The name of a failure, and its exit code.
const fn outcome_of(error: &Error) -> (&'static str, u8) {
    match error {
        Error::Denied(_) => ("denied", 3),
        Error::ToolNotAllowed(_) => ("not_allowed", 4),
        Error::InvalidArguments(_) => ("invalid_arguments", 5),
        Error::ExecutionFailed(_) => ("execution_failed", 6),
        Error::OutcomeUnknown(_) => ("outcome_unknown", 7),
        Error::NotSent(_) => ("not_sent", 8),
        _ => ("upstream", 1),
    }
}

fn described(error: &Error, outcome: &str) -> Value {
    let mut object = json!({"outcome": outcome, "message": error.to_string()});
    if let Some(denial) = error.denial() {
        object["gate"] = json!(denial.gate().to_string());
        object["code"] = json!(denial.blocked().code());
    }
    object
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
