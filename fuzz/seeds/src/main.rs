//! Writes the corpora that fuzzing begins with, from the cases of the integration tests: they are kept once, there.
//!
//! The one argument is the folder that gets a folder for each target.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests");

/// Tools in one list.
const PAGE: usize = 4;

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("no folder is named"))?;
    let corpora = Corpora { folder: folder.into() };
    names(&corpora)?;
    arguments(&corpora)?;
    schemas(&corpora)?;
    results(&corpora)?;
    webhooks(&corpora)
}

struct Corpora {
    folder: PathBuf,
}

impl Corpora {
    fn write(&self, target: &str, name: &str, seed: &str) -> io::Result<()> {
        let folder = self.folder.join(target);
        fs::create_dir_all(&folder)?;
        let name: String = name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
        fs::write(folder.join(name), seed)
    }

    /// A message and its answer, each on its line.
    fn write_messages(&self, name: &str, request: &str, answer: &str) -> io::Result<()> {
        let line = |message: &str| message.replace('\n', " ");
        self.write("raw_messages", name, &format!("{}\n{}", line(request), line(answer)))
    }
}

fn read(file: &str) -> io::Result<Value> {
    let text = fs::read_to_string(Path::new(TESTS).join(file))?;
    Ok(serde_json::from_str(&text)?)
}

/// The cases of a file, each with its name.
fn cases(file: &str) -> io::Result<Vec<(String, Value)>> {
    let mut file = read(file)?;
    let Value::Array(cases) = file["cases"].take() else { return Err(io::Error::other("the file has no cases")) };
    let named = |case: Value| {
        let name = case["id"].as_str().or(case["name"].as_str()).unwrap_or_default().to_owned();
        (name, case)
    };
    Ok(cases.into_iter().map(named).collect())
}

fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn answer(result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
}

fn names(corpora: &Corpora) -> io::Result<()> {
    for (name, case) in cases("vectors/names.json")? {
        corpora.write("profile_filter", &name, &case["input"].to_string())?;
    }
    let list = read("data/tools_list.json")?;
    let names: Vec<_> = list["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
    for (page, names) in names.chunks(PAGE).enumerate() {
        corpora.write("profile_filter", &format!("page-{page}"), &json!({"upstream_names": names}).to_string())?;
    }
    Ok(())
}

fn arguments(corpora: &Corpora) -> io::Result<()> {
    let done = answer(&json!({"content": []})).to_string();
    for (name, case) in cases("vectors/arguments.json")? {
        let input = &case["input"];
        if let Some(raw) = input["raw_message"].as_str() {
            corpora.write_messages(&name, raw, &done)?;
        } else if input.get("tool").is_some() {
            corpora.write("argument_scrub", &name, &input.to_string())?;
            let params = json!({"name": input["tool"], "arguments": input["arguments"]});
            corpora.write_messages(&name, &message("tools/call", &params), &done)?;
        }
    }
    Ok(())
}

fn schemas(corpora: &Corpora) -> io::Result<()> {
    for (name, case) in cases("vectors/schemas.json")? {
        let mut input = case["input"].clone();
        let [accepts, rejects] = ["accepts", "rejects"].map(|key| case["expected"][key].as_array());
        input["calls"] = accepts.into_iter().chain(rejects).flatten().cloned().collect();
        corpora.write("schema_scrub", &name, &input.to_string())?;
    }
    let list = read("data/tools_list.json")?;
    let tools = list["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for tool in tools {
        let name = tool["name"].as_str().unwrap_or_default();
        corpora.write("schema_scrub", name, &json!({"tool": tool}).to_string())?;
    }
    for (page, tools) in tools.chunks(PAGE).enumerate() {
        let answer = answer(&json!({"tools": tools, "nextCursor": "next"})).to_string();
        corpora.write_messages(&format!("page-{page}"), &message("tools/list", &json!({})), &answer)?;
    }
    Ok(())
}

fn results(corpora: &Corpora) -> io::Result<()> {
    for (name, case) in cases("vectors/results.json")? {
        let input = &case["input"];
        let response = input["raw_response"].as_str().map_or_else(|| input["response"].to_string(), str::to_owned);
        result(corpora, &name, input, &response)?;
    }
    for (name, case) in cases("data/execute_results.json")? {
        let response = answer(&case["result"]);
        let input = json!({
            "tool": "execute_decision", "arguments": case["request"]["arguments"], "response": response
        });
        result(corpora, &name, &input, &response.to_string())?;
    }
    Ok(())
}

/// Of the list, an entry in Unicode is left out: the model leaves open what it names.
fn webhooks(corpora: &Corpora) -> io::Result<()> {
    let file = read("vectors/webhooks.json")?;
    let listed = file["hosts"].as_array().into_iter().flatten().filter(|host| host.as_str().is_some_and(str::is_ascii));
    let hosts: Vec<&Value> = listed.collect();
    for (name, case) in cases("vectors/webhooks.json")? {
        for (knob, suffix) in [("", ""), ("allow_http", "-http"), ("allow_internal", "-internal")] {
            let mut input = json!({"url": case["url"], "hosts": hosts});
            if !knob.is_empty() {
                input[knob] = true.into();
            }
            corpora.write("webhook_filter", &format!("{name}{suffix}"), &input.to_string())?;
        }
    }
    Ok(())
}

fn result(corpora: &Corpora, name: &str, input: &Value, response: &str) -> io::Result<()> {
    corpora.write("receipt_mapping", name, &input.to_string())?;
    let params = json!({"name": input["tool"], "arguments": input["arguments"]});
    corpora.write_messages(name, &message("tools/call", &params), response)
}
