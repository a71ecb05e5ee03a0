//! One request, as it is remembered.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use rmcp::model::CallToolRequest;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    Caller, Outcome,
    outcome::{Asked, Ended},
    timestamp,
};
#[cfg(feature = "metrics")]
use crate::profile::EXECUTE_DECISION;
use crate::{
    Denial, ExecuteDecision, ExecutionReceipt, Stripped, ToolNames, ToolRequest, decision::DECISION_ID,
    denial::Overrides, tool_names::for_message,
};

/// Pointers that a record holds at the most: as many as one scrub reports.
const POINTERS: usize = 64;

/// Characters of a snapshot's id at the most.
const SNAPSHOT_LIMIT: usize = 128;

/// One request: who asked for what, and how it ended. It serialises to a flat object; the [module docs](super) have its
/// names.
#[derive(Clone, Debug, Serialize)]
pub struct AuditRecord {
    #[serde(serialize_with = "timestamp::serialize")]
    timestamp: SystemTime,
    #[serde(rename = "mcp.method.name")]
    method: &'static str,
    #[serde(rename = "gen_ai.operation.name", skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    #[serde(rename = "gen_ai.tool.name", skip_serializing_if = "Option::is_none")]
    tool: Option<Box<str>>,
    #[serde(rename = "enduser.id", skip_serializing_if = "Option::is_none")]
    caller: Option<Caller>,
    #[serde(rename = "algenta.outcome")]
    outcome: Outcome,
    #[serde(rename = "error.type", skip_serializing_if = "Option::is_none")]
    error_type: Option<Cow<'static, str>>,
    #[serde(rename = "rpc.response.status_code", skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    code: Option<i32>,
    #[serde(rename = "algenta.reason", skip_serializing_if = "Option::is_none")]
    reason: Option<Box<str>>,
    #[serde(rename = "algenta.gate", skip_serializing_if = "Option::is_none")]
    gate: Option<&'static str>,
    #[serde(rename = "algenta.may_have_run", skip_serializing_if = "std::ops::Not::not")]
    may_have_run: bool,
    #[serde(rename = "mcp.client.operation.duration", serialize_with = "as_seconds")]
    duration: Duration,
    #[serde(rename = "algenta.stripped", skip_serializing_if = "Vec::is_empty")]
    stripped: Vec<Box<str>>,
    #[serde(rename = "algenta.stripped.count", skip_serializing_if = "is_zero")]
    stripped_count: usize,
    #[serde(rename = "algenta.decision.id", skip_serializing_if = "Option::is_none")]
    decision_id: Option<Box<str>>,
    #[serde(rename = "algenta.execution.status", skip_serializing_if = "Option::is_none")]
    execution_status: Option<&'static str>,
    #[serde(rename = "algenta.policy_snapshot.id", skip_serializing_if = "Option::is_none")]
    policy_snapshot_id: Option<Box<str>>,
    #[serde(rename = "algenta.schema_snapshot.id", skip_serializing_if = "Option::is_none")]
    schema_snapshot_id: Option<Box<str>>,
    #[serde(rename = "algenta.overrides", skip_serializing_if = "Vec::is_empty")]
    overrides: Vec<&'static str>,
    #[serde(skip)]
    asked: Asked,
    // The wire's names are the model's choice, so metrics can't have them.
    #[cfg(feature = "metrics")]
    #[serde(skip)]
    contract_tool: Option<&'static str>,
}

impl AuditRecord {
    /// The record of `request`, which says that it was given up until something else is known.
    pub(super) fn begin(request: &ToolRequest, names: &ToolNames) -> Self {
        let mut record = Self::given_up(request.extensions().get::<Caller>().cloned());
        if let ToolRequest::Call(call) = request {
            record.begin_call(call, names);
        }
        record
    }

    /// The record of an operator's repeat, which says that it was given up before it was sent.
    pub(super) fn repeat(denial: &Denial, granted: Overrides, caller: Option<Caller>) -> Self {
        let mut record = Self::given_up(caller);
        record.called(denial.wire_name());
        record.asked = Asked::Execution;
        record.decision_id = Some(escaped(denial.decision().decision_id()));
        record.overrides = granted.names().collect();
        #[cfg(feature = "metrics")]
        {
            record.contract_tool = Some(EXECUTE_DECISION);
        }
        record
    }

    /// The record of a list by `caller`.
    fn given_up(caller: Option<Caller>) -> Self {
        Self {
            timestamp: SystemTime::now(),
            method: "tools/list",
            operation: None,
            tool: None,
            caller,
            outcome: Outcome::Cancelled,
            error_type: Some(Cow::Borrowed(Outcome::Cancelled.as_str())),
            code: None,
            reason: None,
            gate: None,
            may_have_run: false,
            duration: Duration::ZERO,
            stripped: Vec::new(),
            stripped_count: 0,
            decision_id: None,
            execution_status: None,
            policy_snapshot_id: None,
            schema_snapshot_id: None,
            overrides: Vec::new(),
            asked: Asked::List,
            #[cfg(feature = "metrics")]
            contract_tool: None,
        }
    }

    fn called(&mut self, name: &str) {
        self.method = "tools/call";
        self.operation = Some("execute_tool");
        self.tool = Some(for_message(name).into());
        self.asked = Asked::Call;
    }

    fn begin_call(&mut self, call: &CallToolRequest, names: &ToolNames) {
        let name = &*call.params.name;
        self.called(name);
        #[cfg(feature = "metrics")]
        {
            let tool = names.logical(name);
            self.contract_tool = crate::Profile::Execute.tools().find(|known| tool == Some(known));
        }
        // What only looks like it may be it below, if these names are not those of the stack.
        if names.is_execute_decision(name) || names.is_look_alike(name) {
            self.asked = Asked::Execution;
            self.may_have_run = true;
            let id = call.params.arguments.as_ref().and_then(|arguments| arguments.get(DECISION_ID));
            self.decision_id = id.and_then(Value::as_str).and_then(decision_id);
        }
    }

    /// An execution was sent.
    pub(super) const fn sent(&mut self) {
        self.may_have_run = true;
    }

    pub(super) fn end(&mut self, ended: Ended<'_>) {
        let Ended { outcome, error_type, code, reason, gate, may_have_run, receipt } = ended;
        self.outcome = outcome;
        self.error_type = error_type;
        self.code = code;
        self.reason = reason.map(String::into_boxed_str);
        self.gate = gate;
        self.may_have_run = may_have_run;
        if let Some(receipt) = receipt {
            self.executed(receipt);
        }
    }

    fn executed(&mut self, receipt: &ExecutionReceipt) {
        self.execution_status = Some(receipt.status().as_str());
        self.policy_snapshot_id = receipt.policy_snapshot_id().and_then(snapshot_id);
        self.schema_snapshot_id = receipt.schema_snapshot_id().and_then(snapshot_id);
    }

    pub(super) fn close(&mut self, duration: Duration, stripped: &[Stripped]) {
        self.duration = duration;
        self.stripped_count = stripped.iter().map(Stripped::len).sum();
        self.stripped = stripped.iter().flat_map(Stripped::pointers).take(POINTERS).map(escaped).collect();
    }

    /// The contract's name of the tool, if it has one.
    #[cfg(feature = "metrics")]
    pub(super) const fn contract_tool(&self) -> Option<&'static str> {
        self.contract_tool
    }

    pub(super) const fn asked(&self) -> Asked {
        self.asked
    }

    /// When the request came.
    #[must_use]
    pub const fn timestamp(&self) -> SystemTime {
        self.timestamp
    }

    /// `tools/call` or `tools/list`.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// `execute_tool`, for a call.
    #[must_use]
    pub const fn operation(&self) -> Option<&'static str> {
        self.operation
    }

    /// The name that was called: escaped, at most 128 characters of it.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// Who asked, if the request's extensions say so.
    #[must_use]
    pub const fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    /// How the request ended.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// What went wrong, as OpenTelemetry's `error.type` has it.
    #[must_use]
    pub fn error_type(&self) -> Option<&str> {
        self.error_type.as_deref()
    }

    /// The code of the engine's JSON-RPC error.
    #[must_use]
    pub const fn status_code(&self) -> Option<i32> {
        self.code
    }

    /// What a refusal or a failure says of itself; never the engine's words.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The gate that denied; `_OTHER` for one that the contract does not name.
    #[must_use]
    pub const fn gate(&self) -> Option<&'static str> {
        self.gate
    }

    /// The switches that a human granted to an operator's repeat, in the contract's names, also if the repeat was then
    /// refused. None for any other request.
    pub fn overrides(&self) -> impl Iterator<Item = &'static str> {
        self.overrides.iter().copied()
    }

    /// Whether an execution may have run that has no receipt.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        self.may_have_run
    }

    /// From the request to its end.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// JSON pointers to the hidden fields that were removed, at most 64: escaped, with keys that the model chose.
    pub fn stripped(&self) -> impl Iterator<Item = &str> {
        self.stripped.iter().map(|pointer| &**pointer)
    }

    /// How many hidden fields were removed.
    #[must_use]
    pub const fn stripped_count(&self) -> usize {
        self.stripped_count
    }

    /// The decision that was to be executed, if the id is one path segment: escaped.
    #[must_use]
    pub fn decision_id(&self) -> Option<&str> {
        self.decision_id.as_deref()
    }

    /// `delivered` or `failed`, from the receipt.
    #[must_use]
    pub const fn execution_status(&self) -> Option<&'static str> {
        self.execution_status
    }

    /// The policy under which it was executed, from the receipt.
    #[must_use]
    pub fn policy_snapshot_id(&self) -> Option<&str> {
        self.policy_snapshot_id.as_deref()
    }

    /// The schema under which it was executed, from the receipt.
    #[must_use]
    pub fn schema_snapshot_id(&self) -> Option<&str> {
        self.schema_snapshot_id.as_deref()
    }
}

/// The id of a decision as a record may show it. What could not be executed anyway may be anything, a value that belongs
/// elsewhere too.
fn decision_id(id: &str) -> Option<Box<str>> {
    // The rule of the call itself; the URL counts for nothing here.
    ExecuteDecision::new(id, "").ok().map(|decision| escaped(decision.decision_id()))
}

/// The id of a snapshot, unless it is prose: the engine wrote it.
fn snapshot_id(id: &str) -> Option<Box<str>> {
    let is_id = (1..=SNAPSHOT_LIMIT).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'));
    is_id.then(|| id.into())
}

/// `text` without what could drive a terminal; printable characters of all scripts stay.
fn escaped(text: &str) -> Box<str> {
    text.escape_debug().to_string().into()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// OpenTelemetry has codes as text.
#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn as_text<S: Serializer>(code: &Option<i32>, serializer: S) -> Result<S::Ok, S::Error> {
    match code {
        Some(code) => serializer.collect_str(code),
        None => serializer.serialize_none(),
    }
}

fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
