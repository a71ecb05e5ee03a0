//! Each setting does what it says, and leaves the others as they were.

use std::time::Duration;

use rmcp::{
    model::{CallToolResult, ContentBlock, JsonObject},
    object,
};
use serde_json::{Value, json};
use tower::{Layer as _, ServiceExt as _};
use tower_algenta::{
    ArgumentScrub, ArgumentScrubLayer, Error, ExecuteDecision, GovernanceLayer, HiddenFields, Matching, Nested,
    OnHidden, Profile, ProfileFilter, Prose, ReceiptMapping, SchemaScrub, SchemaScrubLayer, ToolNames, ToolRequest,
    ToolResponse, error::InvalidReason, receipt_mapping::OnToolError,
};

use crate::support::{Received, empty_result, object, recording};

/// What is left of `arguments`, or why the call is refused.
fn scrubbed(fields: &HiddenFields, tool: &str, arguments: &Value) -> Result<Value, InvalidReason> {
    let mut arguments = object(arguments);
    fields.scrub_arguments(tool, &mut arguments).map_err(|error| error.reason())?;
    Ok(Value::Object(arguments))
}

#[test]
fn a_hidden_field_can_cost_the_call() {
    let refuse = HiddenFields::new().on_hidden(OnHidden::Refuse);
    for arguments in [json!({"force": false}), json!({"a": {"Force": 1}}), json!({"a": "{\"force\": 1}"})] {
        assert_eq!(scrubbed(&refuse, "query_batch", &arguments), Err(InvalidReason::HiddenField));
    }
    let clean = json!({"a": {"b": 1}, "c": "{}"});
    assert_eq!(scrubbed(&refuse, "query_batch", &clean), Ok(clean));
    assert_eq!(scrubbed(&HiddenFields::new(), "query_batch", &json!({"force": 1, "a": 2})), Ok(json!({"a": 2})));
}

#[tokio::test]
async fn a_hidden_field_in_meta_can_cost_the_call() {
    let fields = HiddenFields::new().on_hidden(OnHidden::Refuse);
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let service = ArgumentScrubLayer::new().hidden_fields(fields).layer(engine);
    let mut call = rmcp::model::CallToolRequestParams::new("simulate");
    call.meta = Some(serde_json::from_value(json!({"com.example/force": true})).unwrap());
    let error = Error::from(service.oneshot(call.into()).await.unwrap_err());
    assert!(matches!(error, Error::InvalidArguments(error) if error.reason() == InvalidReason::HiddenField));
    assert_eq!(received.len(), 0);
}

#[test]
fn names_can_be_exact() {
    let exact = HiddenFields::new().matching(Matching::Exact);
    let arguments =
        json!({"force": 1, "Force": 2, "ｆｏｒｃｅ": 3, "override_safety": 4, "$serde_json::private::x": 5});
    assert_eq!(scrubbed(&exact, "query_batch", &arguments), Ok(json!({"Force": 2, "ｆｏｒｃｅ": 3})));
    let added = exact.with_field("größe");
    assert_eq!(scrubbed(&added, "query_batch", &json!({"größe": 1, "Größe": 2})), Ok(json!({"Größe": 2})));
}

#[test]
fn a_setting_leaves_the_others_alone() {
    let fields = HiddenFields::new()
        .with_field("secret")
        .matching(Matching::Exact)
        .nested(Nested::Refuse)
        .on_hidden(OnHidden::Strip)
        .prose(Prose::Keep)
        .with_field("token");
    assert_eq!(fields.iter().collect::<Vec<_>>(), ["force", "override_safety", "secret", "token"]);
    assert!(fields.hides("secret") && fields.hides("token") && !fields.hides("Secret"));
    assert_eq!(scrubbed(&fields, "query_batch", &json!({"secret": 1})), Ok(json!({})));
    assert_eq!(scrubbed(&fields, "query_batch", &json!({"a": {"secret": 1}})), Err(InvalidReason::HiddenFieldNested));
    let mut tool = rmcp::model::Tool::new("x", "secret: what is said stays", JsonObject::new());
    assert_eq!(fields.scrub_tool("x", &mut tool), Ok(false));

    // In another order.
    let fields = HiddenFields::new()
        .prose(Prose::Keep)
        .on_hidden(OnHidden::Refuse)
        .nested(Nested::Keep)
        .matching(Matching::Exact)
        .with_field("secret");
    assert_eq!(scrubbed(&fields, "query_batch", &json!({"secret": 1})), Err(InvalidReason::HiddenField));
    assert_eq!(scrubbed(&fields, "query_batch", &json!({"a": {"secret": 1}})), Ok(json!({"a": {"secret": 1}})));
    assert_eq!(scrubbed(&fields, "query_batch", &json!({"Secret": 1})), Ok(json!({"Secret": 1})));
    assert_eq!(fields.scrub_tool("x", &mut tool), Ok(false));
}

#[tokio::test]
async fn a_layers_settings_add_up() {
    let execution = |answer: fn() -> CallToolResult, layer: GovernanceLayer| async move {
        let received = Received::default();
        let engine = recording(&received, move |_: &ToolRequest| Ok(answer().into()));
        let call = ToolRequest::call(
            "algenta.execute_decision",
            object!({"decision_id": "d", "webhook_url": "w", "force": 1, "metadata": {"secret": 2}}),
        );
        (layer.layer(engine).oneshot(call).await.map_err(Error::from), received.take())
    };
    // In one order and in the other.
    let layers = || {
        let (names, fields) = (ToolNames::prefixed("algenta."), HiddenFields::new().with_field("secret"));
        let layer = GovernanceLayer::new(Profile::Execute);
        [
            layer
                .clone()
                .tool_names(names.clone())
                .hidden_fields(fields.clone())
                .strict(true)
                .on_tool_error(OnToolError::Abort)
                .deadline(Duration::from_secs(60)),
            layer
                .deadline(Duration::from_secs(60))
                .on_tool_error(OnToolError::Abort)
                .strict(true)
                .hidden_fields(fields)
                .tool_names(names),
        ]
    };
    for layer in layers() {
        let overridden = || {
            CallToolResult::structured(json!({
                "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now",
                "safety_overridden": true
            }))
        };
        let (answer, received) = execution(overridden, layer).await;
        assert!(matches!(answer, Err(Error::ExecutionFailed(_))), "strict: {answer:?}");
        let [ToolRequest::Call(call)] = &received[..] else { panic!("one call, not {received:?}") };
        assert_eq!(
            call.params.arguments.clone().map(Value::Object),
            Some(json!({"decision_id": "d", "webhook_url": "w", "metadata": {"secret": 2}}))
        );
    }
    for layer in layers() {
        let missing = || {
            let body = json!({"error": {"code": "not_found", "message": "m", "status_code": 404}});
            CallToolResult::error(vec![ContentBlock::text(body.to_string())])
        };
        let (answer, _) = execution(missing, layer).await;
        assert!(matches!(answer, Err(Error::ExecutionFailed(_))), "aborts: {answer:?}");
    }
}

#[tokio::test]
async fn a_schema_scrub_takes_names_and_fields() {
    let (names, fields) = (ToolNames::prefixed("algenta."), HiddenFields::new().with_field("secret"));
    for layer in [
        SchemaScrubLayer::new().tool_names(names.clone()).hidden_fields(fields.clone()),
        SchemaScrubLayer::new().hidden_fields(fields).tool_names(names),
    ] {
        let engine = recording(&Received::default(), |_: &ToolRequest| {
            let inner = json!({"properties": {"secret": {}}, "additionalProperties": false});
            let schema = object!({"properties": {"secret": {}, "a": inner, "metadata": inner}});
            let tool = rmcp::model::Tool::new("algenta.execute_decision", "", schema);
            Ok(rmcp::model::ListToolsResult::with_all_items(vec![tool]).into())
        });
        let Ok(ToolResponse::List(list)) = layer.layer(engine).oneshot(ToolRequest::list()).await else {
            panic!("a list answers a list")
        };
        // In the tool's `metadata`, and nowhere else, the call keeps the key.
        let (closed, open) = (json!({"properties": {}, "additionalProperties": false}), json!({"properties": {}}));
        assert_eq!(*list.tools[0].input_schema, object!({"properties": {"a": closed, "metadata": open}}));
    }
}

#[tokio::test]
async fn a_middleware_can_be_made_without_its_layer() {
    let received = Received::default();
    let engine = || recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let call = || ToolRequest::call("simulate", object!({"force": 1, "a": 2}));
    let scrub = ArgumentScrub::<()>::layer();
    scrub.layer(engine()).oneshot(call()).await.unwrap();
    ArgumentScrub::new(engine()).oneshot(call()).await.unwrap();
    for request in received.take() {
        let ToolRequest::Call(call) = request else { panic!("a call") };
        assert_eq!(call.params.arguments, Some(object!({"a": 2})));
    }

    let execution = || ToolRequest::call("execute_decision", ExecuteDecision::new("d", "w").unwrap().to_arguments());
    let refused = ProfileFilter::<(), _>::layer(Profile::Govern).layer(engine()).oneshot(execution()).await;
    assert!(matches!(refused.map_err(Error::from), Err(Error::ToolNotAllowed(_))));
    let mapped = ReceiptMapping::<()>::layer().layer(engine()).oneshot(execution()).await;
    assert!(matches!(mapped.map_err(Error::from), Err(Error::ExecutionFailed(_))));
    let listed = SchemaScrub::<()>::layer().layer(recording(&received, |_: &ToolRequest| {
        let schema = object!({"properties": {"force": {}}});
        Ok(rmcp::model::ListToolsResult::with_all_items(vec![rmcp::model::Tool::new("x", "", schema)]).into())
    }));
    let Ok(ToolResponse::List(list)) = listed.oneshot(ToolRequest::list()).await else { panic!("a list") };
    assert_eq!(*list.tools[0].input_schema, object!({"properties": {}}));
}

#[test]
fn a_tool_names_the_smallest_profile_that_has_it() {
    assert_eq!(Profile::first_with("simulate"), Some(Profile::Observe));
    assert_eq!(Profile::first_with("log_decision"), Some(Profile::Govern));
    assert_eq!(Profile::first_with("execute_decision"), Some(Profile::Execute));
    assert_eq!(Profile::first_with("query_batch"), None);
}
