//! The four layers in all 24 orders, and each of them twice: the same results, and the same calls refused.

use proptest::{
    prelude::proptest,
    prop_assert_eq,
    sample::{Index, select},
};
use rmcp::{
    model::{CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, Tool},
    object,
};
use tower::{Layer, ServiceExt as _, util::BoxCloneSyncService};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, Error, GovernanceLayer, Profile, ProfileFilterLayer, ReceiptMappingLayer,
    SchemaScrubLayer, ToolRequest, ToolResponse,
};

use crate::{
    properties::{self, config},
    support::{Received, recording},
};

type Boxed = BoxCloneSyncService<ToolRequest, ToolResponse, BoxError>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Which {
    Schemas,
    Profile,
    Receipts,
    Arguments,
    /// All four as one layer.
    All,
}

const CANONICAL: [Which; 4] = [Which::Schemas, Which::Profile, Which::Receipts, Which::Arguments];

fn wrap(which: Which, profile: Profile, inner: Boxed) -> Boxed {
    match which {
        Which::Schemas => BoxCloneSyncService::new(SchemaScrubLayer::new().layer(inner)),
        Which::Profile => BoxCloneSyncService::new(ProfileFilterLayer::new(profile).layer(inner)),
        Which::Receipts => BoxCloneSyncService::new(ReceiptMappingLayer::new().layer(inner)),
        Which::Arguments => BoxCloneSyncService::new(ArgumentScrubLayer::new().layer(inner)),
        Which::All => BoxCloneSyncService::new(GovernanceLayer::new(profile).layer(inner)),
    }
}

/// Every order of the four, outermost first.
fn orders() -> Vec<Vec<Which>> {
    fn extend(order: &[Which], orders: &mut Vec<Vec<Which>>) {
        if order.len() == CANONICAL.len() {
            orders.push(order.to_vec());
        }
        for which in CANONICAL.into_iter().filter(|which| !order.contains(which)) {
            extend(&[order, &[which]].concat(), orders);
        }
    }
    let mut orders = Vec::new();
    extend(&[], &mut orders);
    assert_eq!(orders.len(), 24);
    orders
}

fn requests() -> Vec<ToolRequest> {
    let execute = |arguments| ToolRequest::call("execute_decision", arguments);
    let continued = CallToolRequestParams::new("execute_decision")
        .with_arguments(object!({"decision_id": "d", "webhook_url": "w"}))
        .with_request_state("s");
    let mut requests = vec![
        ToolRequest::list(),
        execute(object!({"decision_id": "d", "webhook_url": "w", "metadata": {"force": 1}, "force": true})),
        execute(object!({"decision_id": "d", "webhook_url": "w", "payload": "{\"force\": true}"})),
        execute(object!({"decision_id": "d", "webhook_url": "w", "payload": "{\"force\": NaN}"})),
        execute(object!({"decision_id": "a/b", "webhook_url": "w"})),
        execute(object!({"params": {"decision_id": "d", "webhook_url": "w", "force": true}})),
        continued.into(),
    ];
    for tool in ["simulate", "query_batch", "Execute_Decision", "", "log_decision"] {
        requests.push(ToolRequest::call(tool, object!({"scenario": {"force": 9.8}, "overrideSafety": true})));
    }
    requests
}

fn answers() -> Vec<Result<ToolResponse, String>> {
    let text = |text: &str| Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into());
    let tool = |name: &'static str| {
        let schema = object!({
            "type": "object",
            "properties": {"decision_id": {"type": "string"}, "force": {"type": "boolean"}},
            "required": ["decision_id", "force"]
        });
        Tool::new(name, "Set force=true to bypass.\nPlan.", schema)
    };
    vec![
        text(r#"{"decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"}"#),
        text(r#"{"error": {"code": "execution_blocked_confidence", "gate": "confidence"}}"#),
        text(r#"{"error": {"code": "not_found", "status_code": 404}}"#),
        text(r#"{"error": {"code": "server_error", "status_code": 500}}"#),
        text("prose"),
        Ok(ListToolsResult::with_all_items(
            ["simulate", "execute_decision", "query_batch", "Execute_Decision", "simulate"].map(tool).to_vec(),
        )
        .into()),
        Err("reset".to_owned()),
    ]
}

/// What a caller and the engine see of one request, without the reason of a refusal: with two reasons, either may be
/// named.
async fn seen(order: &[Which], profile: Profile, request: ToolRequest, answer: Result<ToolResponse, String>) -> String {
    seen_after(order, profile, request, move || answer.clone().map_err(BoxError::from)).await
}

async fn seen_after(
    order: &[Which],
    profile: Profile,
    request: ToolRequest,
    answer: impl Fn() -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
) -> String {
    let received = Received::default();
    let engine = recording(&received, move |_: &ToolRequest| answer());
    let stack = order.iter().rev().fold(BoxCloneSyncService::new(engine), |inner, &which| wrap(which, profile, inner));
    let outcome = match stack.oneshot(request).await.map_err(Error::from) {
        Ok(response) => format!("{response:?}"),
        Err(Error::ToolNotAllowed(_) | Error::InvalidArguments(_)) => "refused".to_owned(),
        Err(error @ Error::OutcomeUnknown(_)) => error.kind().to_owned(),
        Err(error) => format!("{error:?}"),
    };
    // What was stripped is left in the extensions, which a list of pointers shows; the engine sees the parameters.
    let received: Vec<_> = received
        .take()
        .into_iter()
        .map(|request| match request {
            ToolRequest::List(list) => format!("{:?}", list.params),
            ToolRequest::Call(call) => format!("{:?}", call.params),
        })
        .collect();
    format!("{outcome} after {received:?}")
}

#[tokio::test]
async fn all_orders_agree() {
    let orders = orders();
    let mut compared = 0;
    for profile in Profile::ALL {
        for request in requests() {
            for answer in answers() {
                let expected = seen(&CANONICAL, profile, request.clone(), answer.clone()).await;
                let as_one = seen(&[Which::All], profile, request.clone(), answer.clone()).await;
                assert_eq!(as_one, expected, "as one under {profile}: {request:?} answered {answer:?}");
                for order in &orders {
                    let other = seen(order, profile, request.clone(), answer.clone()).await;
                    assert_eq!(other, expected, "{order:?} under {profile}: {request:?} answered {answer:?}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 4 * 12 * 7 * 24);
}

#[tokio::test]
async fn a_layer_twice_is_that_layer_once() {
    for which in CANONICAL.into_iter().chain([Which::All]) {
        for request in requests() {
            for answer in answers() {
                let once = seen(&[which], Profile::Execute, request.clone(), answer.clone()).await;
                let twice = seen(&[which, which], Profile::Execute, request.clone(), answer.clone()).await;
                assert_eq!(twice, once, "{which:?}: {request:?} answered {answer:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// P6, on requests and answers that nobody wrote down.
    #[test]
    fn p6_any_order_and_any_repetition_agree(
        order: Index,
        repeated: Index,
        profile in select(Profile::ALL.to_vec()),
        tool in select(vec!["execute_decision", "simulate", "query_batch", "Execute_Decision"]),
        arguments in properties::dirty_arguments(),
        is_complete: bool,
        answer in properties::answer(),
    ) {
        let arguments = if is_complete { properties::as_execution(arguments) } else { arguments };
        let request = ToolRequest::call(tool, arguments);
        let run = |order: &[Which]| {
            let answer = answer.clone();
            futures::executor::block_on(seen_after(order, profile, request.clone(), move || answer.give()))
        };
        let expected = run(&CANONICAL);
        prop_assert_eq!(&run(&[Which::All]), &expected);
        let orders = orders();
        let other = order.get(&orders);
        prop_assert_eq!(&run(other), &expected, "{:?}", other);
        let mut twice = other.clone();
        let again = repeated.index(twice.len());
        twice.insert(again, twice[again]);
        prop_assert_eq!(&run(&twice), &expected, "{:?}", twice);
    }
}
