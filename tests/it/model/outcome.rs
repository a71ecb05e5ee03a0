//! How an `execute_decision` ends: the table, over wire JSON.

use serde_json::{Value, json};

use super::{
    canonical,
    found::{self, Found, objects_in, objects_of},
    quotes,
};

/// What a call ends in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Receipt,
    /// By the gate of this name.
    Denied(String),
    /// A 4xx: the engine refused before it ran anything.
    ToolError,
    /// An answer that is no receipt.
    Failed,
    /// The call may have run.
    Unknown,
    /// One of the last two: the design leaves open which.
    Aborted,
    /// What no execution may end in.
    Outlaw,
}

impl Class {
    /// Whether the crate's answer is this one.
    pub(crate) fn admits(&self, actual: &Self) -> bool {
        self == actual || (*self == Self::Aborted && matches!(actual, Self::Failed | Self::Unknown))
    }
}

/// The two arguments that a receipt is bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) decision_id: &'a str,
    pub(crate) webhook_url: &'a str,
}

/// Whether the arguments may go to the engine at all.
pub(crate) fn well_formed(arguments: &Value) -> bool {
    let id = arguments["decision_id"].as_str();
    let one_segment = id.is_some_and(|id| {
        let outlaw = |c: char| "/\\?#%".contains(c) || c.is_control();
        !id.is_empty() && id != "." && id != ".." && id.len() <= 256 && !id.chars().any(outlaw)
    });
    let is_alias = |key: &String| {
        !["decision_id", "webhook_url"].contains(&key.as_str())
            && ["decisionid", "webhookurl"].contains(&canonical(key).as_str())
    };
    one_segment && arguments["webhook_url"].is_string() && !arguments.as_object().unwrap().keys().any(is_alias)
}

/// Bytes of a text beyond which nobody reads it.
pub(crate) const TEXT_CAP: usize = 1 << 20;

/// One call, with the settings of the layer that judges its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) asked: Asked<'a>,
    /// All that the model wrote, which an answer may quote.
    pub(crate) arguments: &'a Value,
    /// Whether an override that nobody made is a failure.
    pub(crate) is_strict: bool,
    /// Whether a tool error is one.
    pub(crate) aborts: bool,
}

impl<'a> Call<'a> {
    pub(crate) const fn new(asked: Asked<'a>) -> Self {
        Self { asked, arguments: &Value::Null, is_strict: false, aborts: false }
    }
}

/// The class of a `CallToolResult`.
pub(crate) fn of_result(asked: Asked<'_>, result: &Value) -> Class {
    of_result_to(Call::new(asked), result).remove(0)
}

/// The class of a JSON-RPC error.
pub(crate) fn of_rpc_error(message: &str, data: &Value) -> Class {
    of_rpc_error_to(&Value::Null, message, data).remove(0)
}

/// The classes that a `CallToolResult` may have, most often one.
///
/// A denial that is quoted from the arguments is none. Of other quotes the design says nothing: it may count them or not.
pub(crate) fn of_result_to(call: Call<'_>, result: &Value) -> Vec<Class> {
    let texts = found::texts_of_result(result);
    if texts.iter().any(|text| text.trim().len() > TEXT_CAP) {
        return vec![Class::Unknown];
    }
    let mut classes: Vec<Class> = Quotes::EACH
        .into_iter()
        .map(|quotes| {
            let class = judge(&call, &|found| quotes.keep(call.arguments, found), result);
            let is_overridden =
                call.is_strict && wholes(result).iter().any(|copy| copy["safety_overridden"] == json!(true));
            match class {
                Class::Receipt if is_overridden => Class::Failed,
                Class::ToolError if call.aborts => Class::Failed,
                class => class,
            }
        })
        .collect();
    if found::may_be_too_hard(&texts) {
        classes.push(Class::Unknown);
    }
    classes
}

/// The classes that a JSON-RPC error may have.
pub(crate) fn of_rpc_error_to(arguments: &Value, message: &str, data: &Value) -> Vec<Class> {
    let texts = [found::texts_of(data), vec![message.to_owned()]].concat();
    if texts.iter().any(|text| text.trim().len() > TEXT_CAP) {
        return vec![Class::Unknown];
    }
    let mut classes: Vec<Class> = Quotes::EACH
        .into_iter()
        .map(|quotes| {
            let keep = |found: &Found| quotes.keep(arguments, found);
            let objects = kept(&keep, [objects_of(data), objects_in(message, false)].concat());
            match denials(&keep, &objects) {
                Denials::One(gate) if !objects.iter().any(is_complete_receipt) => Class::Denied(gate),
                Denials::One(_) | Denials::Contradiction => Class::Failed,
                Denials::None => Class::Aborted,
            }
        })
        .collect();
    if found::may_be_too_hard(&texts) {
        classes.push(Class::Unknown);
    }
    classes
}

/// Which quotes of the arguments don't count.
#[derive(Clone, Copy)]
enum Quotes {
    Denials,
    /// And what a scrub left of one.
    PartsOfDenials,
    All,
}

impl Quotes {
    const EACH: [Self; 3] = [Self::Denials, Self::PartsOfDenials, Self::All];

    fn keep(self, arguments: &Value, found: &Found) -> bool {
        let reads_like_a_denial = || nested(&found.object).iter().any(|body| !matches!(gate(body), Gate::None));
        match self {
            _ if found.is_whole => true,
            Self::Denials => !(reads_like_a_denial() && quotes::holds(arguments, found)),
            Self::PartsOfDenials => !(reads_like_a_denial() && quotes::may_hold(arguments, found)),
            Self::All => !quotes::may_hold(arguments, found),
        }
    }
}

/// What counts of these objects, and what stands in their wrappers.
fn kept(keep: &dyn Fn(&Found) -> bool, found: Vec<Found>) -> Vec<Value> {
    let mut objects = Vec::new();
    for found in found.into_iter().filter(keep) {
        objects.extend(in_wrapper(&found).into_iter().filter(keep).map(|found| found.object));
        objects.push(found.object);
    }
    objects
}

/// Every value that a text or the structured content is as a whole, out of its wrapper.
fn wholes(result: &Value) -> Vec<Value> {
    whole_values(result).iter().map(unwrapped).collect()
}

fn whole_values(result: &Value) -> Vec<Value> {
    let structured = Some(&result["structuredContent"]).filter(|value| !value.is_null());
    let texts = texts_of(result);
    structured.cloned().into_iter().chain(texts.iter().filter_map(|text| serde_json::from_str(text).ok())).collect()
}

fn texts_of(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str()).collect()
}

fn judge(call: &Call<'_>, keep: &dyn Fn(&Found) -> bool, result: &Value) -> Class {
    let is_error = result["isError"] == json!(true);
    let structured = Some(&result["structuredContent"]).filter(|value| !value.is_null());
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    let texts = texts_of(result);
    let resources = blocks.iter().filter_map(|block| block["resource"]["text"].as_str());

    // Every object that anybody could read as an answer.
    let of_structured = structured.into_iter().flat_map(|value| match value {
        Value::Object(_) => vec![Found { object: value.clone(), text: None, is_whole: true }],
        other => objects_of(other),
    });
    let of_texts = texts.iter().flat_map(|text| objects_in(text, true));
    let of_resources = resources.flat_map(|text| objects_in(text, false));
    let objects = kept(keep, of_structured.chain(of_texts).chain(of_resources).collect());
    let wholes = whole_values(result);
    let copies: Vec<Value> = wholes.iter().map(unwrapped).collect();
    let receipts: Vec<&Value> = objects.iter().filter(|object| is_complete_receipt(object)).collect();

    // 1. A denial.
    match denials(keep, &objects) {
        Denials::One(gate) if receipts.is_empty() => return Class::Denied(gate),
        Denials::One(_) | Denials::Contradiction => return Class::Failed,
        Denials::None => {}
    }
    if objects.iter().flat_map(nested).any(|body| number(&body["status_code"]) == Some(409)) {
        return Class::Failed;
    }

    // 2. An error.
    if is_error || objects.iter().any(has_error) {
        if !receipts.is_empty() {
            return Class::Aborted;
        }
        // The envelope is the whole text, and nothing says anything else.
        let is_alone = blocks.len() == 1 && texts.len() == 1 && wholes.len() == 1 + usize::from(structured.is_some());
        let whole = wholes.last().filter(|_| is_alone);
        let refused = whole.is_some_and(|whole| {
            is_envelope(whole) && status(whole).is_some_and(did_not_run) && copies.iter().all(|copy| copy == whole)
        });
        return if refused { Class::ToolError } else { Class::Unknown };
    }

    // 3. A receipt, 4. anything else.
    match copies.first() {
        Some(first)
            if is_complete_receipt(first)
                && is_bound(call.asked, first)
                && copies.iter().chain(receipts).all(|other| other == first) =>
        {
            Class::Receipt
        }
        _ => Class::Failed,
    }
}

enum Denials {
    None,
    One(String),
    Contradiction,
}

fn denials(keep: &dyn Fn(&Found) -> bool, objects: &[Value]) -> Denials {
    let mut gates: Vec<String> = Vec::new();
    for body in objects.iter().flat_map(|object| bodies(keep, object)) {
        match gate(&body) {
            Gate::None => {}
            Gate::Contradiction => return Denials::Contradiction,
            Gate::Is(gate) if gates.contains(&gate) => {}
            Gate::Is(gate) => gates.push(gate),
        }
    }
    match gates.len() {
        0 => Denials::None,
        1 => Denials::One(gates.remove(0)),
        _ => Denials::Contradiction,
    }
}

/// Where the body of a denial may stand: at the top, under `error`, under `detail`, under both, and, for a 409, in
/// the text of the message.
fn bodies(keep: &dyn Fn(&Found) -> bool, object: &Value) -> Vec<Value> {
    let mut found = nested(object);
    for body in found.clone() {
        if number(&body["status_code"]) == Some(409) {
            let message = body["message"].as_str().unwrap_or_default();
            let quoted = objects_in(message, false).into_iter().filter(keep);
            found.extend(quoted.flat_map(|found| nested(&found.object)));
        }
    }
    found
}

fn nested(object: &Value) -> Vec<Value> {
    let (error, detail) = (&object["error"], &object["detail"]);
    [object, error, detail, &detail["error"], &error["detail"], &error["error"], &error["detail"]["error"]]
        .into_iter()
        .filter(|body| body.is_object())
        .cloned()
        .collect()
}

enum Gate {
    None,
    Is(String),
    Contradiction,
}

/// A code that is spelled in another way, or breaks off, is a denial's, but nobody knows which.
fn is_odd_code(code: &str) -> bool {
    code.to_lowercase().starts_with("execution_blocked_")
}

/// Without a gate the code gives it; a code and a gate that don't say the same are no clear denial.
fn gate(body: &Value) -> Gate {
    let code = body["code"].as_str().and_then(|code| code.strip_prefix("execution_blocked_")).filter(|g| !g.is_empty());
    match (&body["gate"], code) {
        (Value::Null, None) if body["code"].as_str().is_some_and(is_odd_code) => Gate::Contradiction,
        (Value::Null, None) => Gate::None,
        (Value::Null, Some(code)) => Gate::Is(code.to_owned()),
        (Value::String(gate), Some(code)) if gate == code => Gate::Is(code.to_owned()),
        (Value::String(gate), None) if body["code"].is_null() && !gate.is_empty() => Gate::Is(gate.clone()),
        _ => Gate::Contradiction,
    }
}

/// Whether a value is an error and nothing else; REST bodies have the id of the request beside it.
fn is_envelope(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.keys().all(|key| key == "error" || key == "request_id"))
}

/// The status of an error envelope.
fn status(object: &Value) -> Option<u64> {
    object["error"]["status_code"].as_u64()
}

/// Of the 4xx all but these four say that nothing ran.
fn did_not_run(status: u64) -> bool {
    (400..500).contains(&status) && ![408, 409, 425, 499].contains(&status)
}

/// A sole `result` member, or JSON text in it, is the answer in a wrapper.
fn unwrapped(value: &Value) -> Value {
    let as_it_is = || value.clone();
    match sole_result(value) {
        Some(Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or_else(as_it_is),
        Some(inner) if inner.is_object() => inner.clone(),
        _ => as_it_is(),
    }
}

/// The objects under a sole `result`.
fn in_wrapper(found: &Found) -> Vec<Found> {
    match sole_result(&found.object) {
        Some(inner @ Value::Object(_)) => vec![Found { object: inner.clone(), text: None, is_whole: true }],
        Some(Value::String(text)) => objects_in(text, found.is_whole),
        Some(other) => objects_of(other),
        None => Vec::new(),
    }
}

fn sole_result(value: &Value) -> Option<&Value> {
    value.as_object().filter(|map| map.len() == 1)?.get("result")
}

/// Whether an object says that something failed, in whatever spelling. Null and false say that nothing did.
fn has_error(object: &Value) -> bool {
    let failed = |(key, value): (&String, &Value)| match canonical(key).as_str() {
        "error" | "errors" | "iserror" | "errorcode" | "errormessage" | "gate" => {
            !value.is_null() && *value != json!(false)
        }
        "statuscode" => number(value).is_none_or(|status| status >= 400),
        "code" => value.as_str().is_some_and(is_odd_code),
        _ => false,
    };
    object.as_object().is_some_and(|map| map.iter().any(failed))
}

/// A number, or one that is written as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn is_complete_receipt(value: &Value) -> bool {
    let text = |field: &str| value[field].is_string();
    let absent_or = |field: &str, fits: fn(&Value) -> bool| value.get(field).is_none_or(fits);
    text("decision_id")
        && text("webhook_url")
        && text("executed_at")
        && ["delivered", "failed"].iter().any(|status| value["execution_status"] == *status)
        && absent_or("response_code", |value| value.is_null() || value.as_u64().is_some_and(|code| code < 65536))
        && absent_or("safety_overridden", Value::is_boolean)
        && absent_or("manifest_version", |value| value.is_string() || value.is_number())
        && absent_or("policy_snapshot_id", Value::is_string)
        && absent_or("schema_snapshot_id", Value::is_string)
}

fn is_bound(asked: Asked<'_>, receipt: &Value) -> bool {
    receipt["decision_id"] == asked.decision_id && receipt["webhook_url"] == asked.webhook_url
}
