//! Hands a [`Toolset`] to a rig agent so that a denial ends the run.
//!
//! What a tool answers goes to the model, and so do its errors: a result with `isError`, a 4xx before anything ran. A
//! governed failure ([`Error::is_governed_failure`]) does not: it cancels the run, whatever hooks the agent has, and
//! [`run`] or [`stream`] hands it to its caller as the typed error it is. A refusal, after which nothing was called, is
//! told to the model in the plain words of its `Display`, so that it can correct its arguments. Where the call failed in
//! another way the model reads that it failed and no more: the text may be the network's.
//!
//! # How
//!
//! rig relays what a tool answers as data, errors too: a kind and a text, never a type. The kind `Cancelled` ends the
//! run without a word to the model, but only from a handler: in a [`ToolExecutionError`] the same word is a text for the
//! model. So a tool is a handler here, each run carries a [`Ledger`] in its tool context, and a governed failure is left
//! there before the run is cancelled.
//!
//! # What it leaves open
//!
//! An agent that is a tool of another one shares the outer run's ledger. Its denial ends its own run; rig tells the
//! outer model that the tool failed, and why it did is for the caller of the outer run. No governed tool answers after
//! that.
//!
//! # Why it is an example and no feature
//!
//! It is written for rig 0.44. rig changes these traits with each release, asks for a newer compiler than this crate,
//! and switches on `preserve_order` in `serde_json` for the whole build. Copy this file.

use std::{
    error, fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{Stream, StreamExt as _};
use rig_agent::{
    agent::{AgentRunner, MultiTurnStreamItem, PromptResponse},
    completion::PromptError,
    core::{
        effect::{EffectKind, FamilyDescriptor, HandlerDescriptor, Outcome, family, tool_key},
        error::{ErrorKind, ErrorReport},
        message::ToolResultContent,
        serve::{self, Dispatch, Reply, Serve},
    },
    tool::{
        RegisteredTool, ToolContext, ToolExecutionError, ToolOutput, ToolResult,
        server::{ToolServer, ToolServerHandle},
    },
};
use rmcp::model::{CallToolResult, JsonObject, Tool};
use serde_json::Value;
use tower_algenta::{BoxError, CallOutcome, Error, ExecutionReceipt, Toolset};

/// The tools that `toolset` lists now, for `AgentBuilder::tool_server_handle`.
pub(crate) async fn tools(toolset: &Toolset) -> Result<ToolServerHandle, BoxError> {
    let mut server = ToolServer::new();
    for tool in toolset.list().await? {
        let tool = GovernedTool { toolset: toolset.clone(), tool };
        server = server.registered_tool(RegisteredTool::from_handler(tool)?);
    }
    Ok(server.run())
}

/// Runs an agent to its end: `run(agent.prompt("…").max_turns(5))`.
///
/// It sets the runner's tool context.
pub(crate) async fn run(runner: AgentRunner) -> Result<PromptResponse, RunError> {
    let ledger = Arc::new(Ledger::default());
    let outcome = runner.tool_context(ledger.context()).await;
    ledger.settle(outcome)
}

/// As [`run`], item by item. An error is the last item.
pub(crate) fn stream(runner: AgentRunner) -> impl Stream<Item = Result<MultiTurnStreamItem, RunError>> + Send {
    let ledger = Arc::new(Ledger::default());
    let items = runner.tool_context(ledger.context()).stream();
    futures::stream::unfold(Some((items, ledger)), |state| async {
        let (mut items, ledger) = state?;
        let item = items.next().await.transpose();
        match ledger.settle(item) {
            Ok(item) => item.map(|item| (Ok(item), Some((items, ledger)))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// A run that ended in an error.
///
/// [`Error::find`] finds the governed failure that ended it, if one did.
#[derive(Debug)]
pub(crate) struct RunError {
    failures: Vec<Error>,
    receipts: Vec<ExecutionReceipt>,
    rig: Option<Box<PromptError>>,
}

impl RunError {
    /// What must not be lost of the run: several, where tools were called side by side.
    pub(crate) fn failures(&self) -> &[Error] {
        &self.failures
    }

    /// The executions that went through before or beside the failure. The history may lack them: rig drops the results
    /// of a turn in which one call cancels the run.
    pub(crate) fn receipts(&self) -> &[ExecutionReceipt] {
        &self.receipts
    }

    /// What rig says of it, with the history up to there.
    pub(crate) fn rig(&self) -> Option<&PromptError> {
        self.rig.as_deref()
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.failures.first(), &self.rig) {
            (Some(failure), _) => write!(f, "the run was aborted: {failure}"),
            (None, Some(rig)) => write!(f, "the run failed: {rig}"),
            (None, None) => f.write_str("the run failed"),
        }
    }
}

impl error::Error for RunError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match (self.failures.first(), &self.rig) {
            (Some(failure), _) => Some(failure),
            (None, Some(rig)) => Some(&**rig),
            (None, None) => None,
        }
    }
}

/// What the governed tools of one run leave for its caller.
#[derive(Default)]
struct Ledger(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    failures: Vec<Error>,
    receipts: Vec<ExecutionReceipt>,
}

impl Ledger {
    fn context(self: &Arc<Self>) -> ToolContext {
        ToolContext::new().with_scope(Arc::<Self>::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome, unless a governed failure is on record: a hook may have made a result of it.
    fn settle<T>(&self, outcome: Result<T, PromptError>) -> Result<T, RunError> {
        let mut entries = self.lock();
        match outcome {
            Ok(value) if entries.failures.is_empty() => Ok(value),
            outcome => {
                let Entries { failures, receipts } = std::mem::take(&mut *entries);
                Err(RunError { failures, receipts, rig: outcome.err().map(Box::new) })
            }
        }
    }
}

/// One tool of the toolset as a handler of rig's.
struct GovernedTool {
    toolset: Toolset,
    tool: Tool,
}

impl Serve for GovernedTool {
    type Family = family::Tool;

    fn descriptor(&self) -> HandlerDescriptor {
        HandlerDescriptor {
            key: tool_key(&self.tool.name),
            family: FamilyDescriptor::Tool {
                name: self.tool.name.to_string(),
                description: self.tool.description.as_deref().unwrap_or_default().to_owned(),
                parameters: Value::Object((*self.tool.input_schema).clone()),
                embedding: None,
            },
            layers: Vec::new(),
        }
    }

    async fn serve(&self, kind: EffectKind, dispatch: Dispatch) -> Reply {
        let ledger = dispatch.scope::<ToolContext>().and_then(|context| context.scope::<Ledger>());
        match kind {
            EffectKind::ToolCall { name, args } if name == self.tool.name => self.call(&args, ledger.as_deref()).await,
            _ => {
                let report = ErrorReport::new(ErrorKind::HandlerUnavailable, "this handler serves one tool");
                Reply::Outcome(Err(report))
            }
        }
    }
}

impl GovernedTool {
    async fn call(&self, args: &str, ledger: Option<&Ledger>) -> Reply {
        if ledger.is_some_and(|ledger| !ledger.lock().failures.is_empty()) {
            return Reply::Outcome(Err(serve::cancelled()));
        }
        // `null` is how some models write that they have none.
        let Ok(arguments) = serde_json::from_str::<Option<JsonObject>>(args) else {
            return told(ToolResult::failed(ToolExecutionError::invalid_args("the arguments are no JSON object")));
        };
        match self.toolset.call(self.tool.name.clone(), arguments.unwrap_or_default()).await {
            Ok(outcome) => {
                if let (Some(ledger), Some(receipt)) = (ledger, outcome.receipt()) {
                    ledger.lock().receipts.push(receipt.clone());
                }
                told(answer(&outcome))
            }
            Err(error) => failure(error, ledger),
        }
    }
}

/// What the model is told.
const fn told(result: ToolResult) -> Reply {
    Reply::Outcome(Ok(Outcome::ToolResult { result }))
}

/// What the model reads of an answer.
fn answer(outcome: &CallOutcome) -> ToolResult {
    let Some(result) = outcome.result() else {
        return ToolResult::failed(ToolExecutionError::other("the tool gave no result"));
    };
    if result.is_error == Some(true) {
        let error = ToolExecutionError::other("the tool answered with an error");
        ToolResult::failed(error.with_model_output(output(result)))
    } else {
        ToolResult::success(output(result))
    }
}

/// The texts of a result, or what is structured in it. Pictures and links, which no tool of the contract gives, stay out.
fn output(result: &CallToolResult) -> ToolOutput {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    let texts: Vec<_> = texts.map(|block| ToolResultContent::text(block.text.as_str())).collect();
    match &result.structured_content {
        Some(value) if texts.is_empty() => ToolOutput::json(value.clone()),
        _ => ToolOutput::content(texts).unwrap_or_else(|_| ToolOutput::text("")),
    }
}

/// What the model reads of an error; or the end of the run, for a governed failure and for all that is new.
fn failure(error: Error, ledger: Option<&Ledger>) -> Reply {
    let error = match Error::find(&error) {
        Some(refusal @ Error::ToolNotAllowed(_)) => ToolExecutionError::refused(refusal.to_string()),
        Some(refusal @ Error::InvalidArguments(_)) => ToolExecutionError::invalid_args(refusal.to_string()),
        Some(Error::NotSent(_) | Error::Upstream(_) | Error::UnexpectedResponse(_)) => {
            // It keeps the text from the model.
            ToolExecutionError::from_error(error)
        }
        _ => {
            let report = ErrorReport::new(ErrorKind::Cancelled, error.to_string()).with_code(error.kind());
            if let Some(ledger) = ledger {
                ledger.lock().failures.push(error);
            }
            return Reply::Outcome(Err(report));
        }
    };
    told(ToolResult::failed(error))
}
