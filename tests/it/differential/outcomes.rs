//! Answers to `execute_decision`.

use rmcp::{
    ErrorData,
    model::{CallToolResult, ErrorCode},
};
use serde_json::{Value, json};
use tower_algenta::{BoxError, Error, ReceiptMappingLayer, ToolRequest, ToolResponse, receipt_mapping::OnToolError};

use super::{answers::Answers, cases, through};
use crate::{
    checks::outcomes::class,
    model::outcome::{self, Asked, Call, Class, TEXT_CAP},
    random::Random,
    support::object,
};

const ASKED: Asked<'_> = Asked { decision_id: "d", webhook_url: "w" };

/// How a call ends that is answered so.
fn executed(
    call: Call<'_>,
    answer: impl Fn() -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
) -> Result<ToolResponse, Error> {
    let on_tool_error = if call.aborts { OnToolError::Abort } else { OnToolError::Pass };
    let layer = ReceiptMappingLayer::new().strict(call.is_strict).on_tool_error(on_tool_error);
    let mut arguments = json!({"decision_id": ASKED.decision_id, "webhook_url": ASKED.webhook_url});
    for (key, value) in call.arguments.as_object().into_iter().flatten() {
        arguments[key] = value.clone();
    }
    let request = ToolRequest::call("execute_decision", object(&arguments));
    let (outcome, received) = through(&layer, request, answer);
    assert_eq!(received.len(), 1);
    outcome
}

/// Compares one result, given as it stands on the wire.
#[track_caller]
pub(crate) fn compare(result: &Value) -> Class {
    compare_to(Call::new(ASKED), result)
}

#[track_caller]
fn compare_to(call: Call<'_>, result: &Value) -> Class {
    let decoded: CallToolResult = serde_json::from_value(result.clone()).unwrap();
    let actual = class(&executed(call, move || Ok(decoded.clone().into())));
    let expected = outcome::of_result_to(call, result);
    let is_expected = expected.iter().any(|class| class.admits(&actual));
    assert!(is_expected, "{call:?}: {expected:?}, but {actual:?}: {result:#}");
    actual
}

#[track_caller]
fn compare_error(arguments: &Value, message: &str, data: &Value) -> Class {
    let error = ErrorData::new(ErrorCode(-32000), message.to_owned(), Some(data.clone()));
    let call = Call { arguments, ..Call::new(ASKED) };
    let actual = class(&executed(call, move || Err(error.clone().into())));
    let expected = outcome::of_rpc_error_to(arguments, message, data);
    let is_expected = expected.iter().any(|class| class.admits(&actual));
    assert!(is_expected, "{arguments}: {expected:?}, but {actual:?}: {message} with {data:#}");
    actual
}

#[test]
fn results_end_as_in_the_model() {
    let mut random = Answers(Random::new(0x005e_ed04));
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..cases() {
        let class = compare(&random.result());
        *seen.entry(format!("{class:?}").split('(').next().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 5, "every class is met: {seen:?}");
    assert!(seen.values().all(|count| *count * 200 > cases()), "and none by chance: {seen:?}");
}

#[test]
fn json_rpc_errors_end_as_in_the_model() {
    let mut random = Answers(Random::new(0x005e_ed05));
    for _ in 0..cases() / 3 {
        let data = match random.0.below(4) {
            0 => Value::Null,
            1 => {
                let body = random.body();
                Value::String(random.text(&body))
            }
            _ => random.body(),
        };
        let body = random.body();
        let message = if random.0.one_in(2) { "Internal error".to_owned() } else { random.text(&body) };
        compare_error(&Value::Null, &message, &data);
    }
}

/// Strict, and with tool errors that abort.
#[test]
fn the_knobs_turn_as_in_the_model() {
    let mut random = Answers(Random::new(0x005e_ed09));
    let mut turned = [0; 2];
    for _ in 0..cases() {
        let mut result = random.result();
        if random.0.one_in(3) {
            let mut body = [random.receipt(), random.error()][random.0.below(2)].clone();
            if body.get("executed_at").is_some() {
                body["safety_overridden"] = json!(true);
            }
            result = json!({"content": [{"type": "text", "text": body.to_string()}]});
        }
        let call = Call { is_strict: random.0.one_in(2), aborts: random.0.one_in(2), ..Call::new(ASKED) };
        let class = compare_to(call, &result);
        let plain = outcome::of_result(ASKED, &result);
        turned[0] += usize::from(plain == Class::Receipt && class == Class::Failed);
        turned[1] += usize::from(plain == Class::ToolError && class == Class::Failed);
    }
    assert!(turned.iter().all(|count| count * 200 > cases()), "{turned:?}");
}

/// A model that writes denials, receipts and errors into its calls, and an engine that quotes them, or says the like.
#[test]
fn quotes_of_the_arguments_count_as_in_the_model() {
    let mut random = Answers(Random::new(0x005e_ed0a));
    let mut quoted = 0;
    for case in 0..cases() {
        let written: Vec<Value> = (0..=random.0.below(2)).map(|_| random.body()).collect();
        let arguments = random.arguments(&written);
        let said = written[0].clone();
        let mut result = random.result();
        for block in result["content"].as_array_mut().unwrap() {
            if block["type"] == "text" && random.0.one_in(2) {
                block["text"] = random.quote(&said).into();
            }
        }
        if random.0.one_in(8) {
            result["structuredContent"] = [said.clone(), json!([said.clone()])][random.0.below(2)].clone();
        }
        let call = Call { arguments: &arguments, ..Call::new(ASKED) };
        let class = compare_to(call, &result);
        quoted += usize::from(class != outcome::of_result(ASKED, &result));
        if case % 3 == 0 {
            let (message, body) = (random.quote(&said), random.body());
            let data = [Value::Null, said.clone(), json!(random.quote(&said)), body][random.0.below(4)].clone();
            let class = compare_error(&arguments, &message, &data);
            quoted += usize::from(!outcome::of_rpc_error(&message, &data).admits(&class));
        }
    }
    assert!(quoted * 50 > cases(), "some quotes matter: {quoted}");
}

/// Texts at the cap, over it, and full of braces.
#[test]
fn long_and_hard_texts_end_as_in_the_model() {
    let mut random = Answers(Random::new(0x005e_ed0b));
    let mut unknown = 0;
    for _ in 0..cases() / 100 {
        let body = random.body();
        let text = random.text(&body);
        let len = TEXT_CAP - text.len();
        let padding = match random.0.below(7) {
            0 => " ".repeat(len + 1),
            1 => "x".repeat(len + 1),
            2 => "x".repeat(len),
            3 => "x".repeat(len / 2),
            4 => "{".repeat(random.0.below(3000)),
            5 => "{\"a\":".repeat(random.0.below(600)),
            _ => "{\"a\":1,}".repeat(random.0.below(400)),
        };
        let text = if random.0.one_in(2) { padding + &text } else { text + &padding };
        let result = match random.0.below(3) {
            0 => json!({"content": [{"type": "text", "text": text}, {"type": "text", "text": body.to_string()}]}),
            1 => json!({"content": [{"type": "text", "text": text}], "structuredContent": body}),
            _ => json!({"content": [{"type": "text", "text": text}]}),
        };
        unknown += usize::from(compare(&result) == Class::Unknown);
        if random.0.one_in(4) {
            compare_error(&Value::Null, &text, &body);
        }
    }
    assert!(unknown * 400 > cases(), "some are not read: {unknown}");
}

#[test]
fn arguments_of_executions_are_refused_as_in_the_model() {
    const PIECES: [&str; 22] = [
        "d", "ec-1", "/", "\\", "?", "#", "%", "%2e", ".", "..", " ", "\n", "\0", "\u{7f}", "\u{85}", "\u{2028}",
        "\u{e9}", "{}", "\u{202e}", "\u{ff0f}", "_", "~",
    ];
    let mut random = Random::new(0x005e_ed06);
    for _ in 0..cases() / 3 {
        let mut id: String = (0..random.below(5)).map(|_| random.pick(&PIECES)).collect();
        if random.one_in(20) {
            id = "\u{e9}".repeat(random.below(4) + 126);
        }
        let mut arguments = json!({"decision_id": id, "webhook_url": "w"});
        match random.below(8) {
            0 => arguments["decision_id"] = [Value::Null, json!(5), json!(["d"])][random.below(3)].clone(),
            1 => arguments["webhook_url"] = [Value::Null, json!(5), json!({})][random.below(3)].clone(),
            2 => arguments["timeout_seconds"] = [Value::Null, json!(5), json!(0.5)][random.below(3)].clone(),
            _ => {}
        }
        let call = ToolRequest::call("execute_decision", object(&arguments));
        let answer = || Err("reset".into());
        let (outcome, received) = through(&ReceiptMappingLayer::new(), call, answer);
        let goes = outcome::well_formed(&arguments);
        assert_eq!(received.len(), usize::from(goes), "{arguments}");
        assert_eq!(matches!(outcome, Err(Error::InvalidArguments(_))), !goes, "{arguments}: {outcome:?}");
    }
}

/// What the differential test found, and what to find again.
#[test]
fn cases_that_once_differed() {
    // The engine decodes a text and quotes a part of what it holds.
    let denial = json!({"error": {"gate": "confidence"}});
    let arguments = json!({"surprise": Value::String(json!({"a": [{"b": denial}]}).to_string())});
    assert_eq!(compare_error(&arguments, "Internal error", &denial), Class::Unknown);
    let result = json!({"content": [{"type": "text", "text": format!("timed out after {denial:#}")}], "isError": true});
    let call = Call { arguments: &arguments, ..Call::new(ASKED) };
    assert_eq!(compare_to(call, &result), Class::Unknown);
}
