//! What a receipt tells, and what is none.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::json;
use tower_algenta::{CallOutcome, ExecutionReceipt};

use super::{execution, receipt, text};
use crate::support::object;

#[test]
fn a_receipt_tells_what_the_engine_wrote() {
    let read = ExecutionReceipt::from_value(&receipt()).unwrap();
    assert_eq!(read.decision_id(), "d");
    assert_eq!(read.webhook_url(), "w");
    assert_eq!(format!("{:>9}", read.status()), "   failed");
    assert!(!read.is_delivered());
    assert_eq!(read.response_code(), Some(502));
    assert_eq!(read.executed_at(), "2026-11-30T00:00:00Z");
    assert_eq!(read.policy_snapshot_id(), Some("p"));
    assert_eq!(read.schema_snapshot_id(), Some("s"));
    assert_eq!(read.manifest_version().as_deref(), Some("3.1"));
    assert_eq!(read.payload_summary(), Some(&json!({"bytes": 7})));
    assert_eq!(*read.fields(), object(&receipt()));
}

#[test]
fn a_receipt_is_what_its_fields_are_however_they_are_written() {
    let written = |text_of_it: String| ExecutionReceipt::from_result(&text(text_of_it)).unwrap();
    let read = ExecutionReceipt::from_value(&receipt()).unwrap();
    let plain = written(receipt().to_string());
    let escaped = written(receipt().to_string().replace("\"d\"", r#""\u0064""#).replace("\"w\"", r#""\u0077""#));
    let wrapped = written(json!({"result": receipt()}).to_string());
    for same in [&plain, &escaped, &wrapped] {
        assert_eq!((same.decision_id(), same.webhook_url()), ("d", "w"));
        assert_eq!(same.executed_at(), read.executed_at());
        assert_eq!(*same, read);
        assert_eq!(format!("{same:?}"), format!("{read:?}"));
    }
    let mut other = receipt();
    other["region"] = json!("us");
    assert_ne!(ExecutionReceipt::from_value(&other).unwrap(), read);
    assert_ne!(written(other.to_string()), plain);
    let least = json!({"decision_id": "d", "webhook_url": "w", "execution_status": "failed", "executed_at": "now"});
    let fields = object(&least);
    let printed = format!("ExecutionReceipt {{ status: Failed, fields: {fields:?} }}");
    assert_eq!(format!("{:?}", written(least.to_string())), printed);
}

#[test]
fn a_receipt_says_nothing_that_the_engine_did_not() {
    let least = json!({"decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"});
    let read = ExecutionReceipt::from_value(&least).unwrap();
    assert_eq!(read.response_code(), None);
    assert_eq!(read.policy_snapshot_id(), None);
    assert_eq!(read.schema_snapshot_id(), None);
    assert_eq!(read.manifest_version(), None);
    assert_eq!(read.payload_summary(), None);
    assert!(!read.safety_overridden());
}

#[test]
fn a_wrapped_receipt_is_all_that_its_wrapper_holds() {
    let read = |inner: &str| {
        let wrapped = json!({"result": inner}).to_string();
        ExecutionReceipt::from_result(&text(wrapped)).is_ok()
    };
    let whole = receipt().to_string();
    assert!(read(&whole) && read(&format!(" {whole}\n")));
    for inner in [
        format!("Executed: {whole}"),
        format!("{whole} or so"),
        format!("{whole}{whole}"),
        whole.replacen('{', r#"{"decision_id": "other", "#, 1),
    ] {
        assert!(!read(&inner), "{inner}");
    }
}

#[test]
fn of_two_members_with_one_name_no_reader_knows_which_holds() {
    let read = |members: &str| {
        // An escape in a name, so that names can't be compared as they are written.
        let start = r#"{"decision_\u0069d": "d", "webhook_url": "w", "execution_status": "delivered""#;
        ExecutionReceipt::from_result(&text(format!(r#"{start}, "executed_at": "now"{members}}}"#))).is_ok()
    };
    for members in [
        "",
        r#", "payload_summary": {"a": [{"b": 1, "c": -1, "d": 1.5, "e": null, "f": true, "g": "h"}, [2], {}]}"#,
        r#", "x": {"a": 1}, "y": {"a": 1}"#,
        r#", "payload_summary": {"$serde_json::private::Number": "1"}"#,
    ] {
        assert!(read(members), "{members}");
    }
    for members in [
        r#", "decision_id": "other""#,
        r#", "payload_summary": {"a": 1, "\u0061": 2}"#,
        r#", "payload_summary": [[{"a": 1, "\u0061": 2}]]"#,
    ] {
        assert!(!read(members), "{members}");
    }
}

#[test]
fn what_is_no_receipt_says_what_is_missing() {
    let error = ExecutionReceipt::from_value(&json!([])).unwrap_err();
    assert_eq!((error.field(), error.to_string().as_str()), (None, "no receipt"));
    let error = ExecutionReceipt::from_value(&json!({"decision_id": "d"})).unwrap_err();
    assert_eq!(error.field(), Some("webhook_url"));
    assert_eq!(error.to_string(), "an incomplete receipt: `webhook_url` is missing or has another type");
}

#[test]
fn a_transcript_gives_up_a_receipt_only_if_nothing_in_it_failed() {
    let read =
        |result: &CallToolResult| ExecutionReceipt::from_result(result).ok().map(|read| read.decision_id().len());
    let plain = text(receipt().to_string());
    assert_eq!(read(&plain), Some(1));
    let mut failed = plain.clone();
    failed.is_error = Some(true);
    assert_eq!(read(&failed), None);
    let deep = (0..200).fold(json!({}), |inner, _| json!([inner]));
    for beside in [
        json!({"error": "m"}),
        json!({"status_code": 409}),
        json!({"gate": "confidence"}),
        json!({"isError": true}),
        json!({"decision_id": "other", "webhook_url": "w", "execution_status": "failed", "executed_at": "now"}),
        deep,
    ] {
        let mut result = plain.clone();
        result.structured_content = Some(beside.clone());
        assert_eq!(read(&result), None, "{beside}");
    }
    // Prose is no copy, but what it says counts.
    for prose in [r#"{"error": "m"}"#, r#"{"detail": {"status_code": 409}}"#, r#"{"status_code": 500}"#] {
        let mut result = plain.clone();
        result.content.push(ContentBlock::text(format!("Log: {prose}")));
        assert_eq!(read(&result), None, "{prose}");
    }
    // A `code` that is no denial's is data.
    let mut coded = receipt();
    coded["code"] = json!("A7");
    assert_eq!(read(&text(coded.to_string())), Some(1));
}

#[tokio::test]
async fn a_completed_call_gives_up_its_parts() {
    let answer = || text(receipt().to_string());
    let outcome = execution(move || answer().into()).await.unwrap();
    assert_eq!(outcome.result(), Some(&answer()));
    assert_eq!(outcome.receipt().map(ExecutionReceipt::decision_id), Some("d"));
    assert_eq!(outcome.clone().into_result(), Some(answer()));
    assert_eq!(outcome.clone().into_receipt(), ExecutionReceipt::from_value(&receipt()).ok());
    let (response, receipt) = outcome.into_parts();
    assert!(matches!(response, CallToolResponse::Complete(result) if result == answer()) && receipt.is_some());

    let plain = CallOutcome::from(text("42"));
    assert_eq!(plain.receipt(), None);
    assert_eq!(plain.into_receipt(), None);
}
