//! What the layers add to the size of a service and of its future. They are moved with every call.

use std::{
    future::{Future, Ready},
    mem::size_of,
};

use rmcp::model::JsonObject;
use tower::{Layer, Service, service_fn};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, GovernanceLayer, HiddenFields, Profile, ProfileFilterLayer, ReceiptMappingLayer,
    SchemaScrubLayer, ToolNames, ToolRequest, ToolResponse,
};

const WORD: usize = size_of::<usize>();

/// The bytes that `layer` adds to the future of `inner`.
fn added<S, L>(inner: S, layer: &L) -> usize
where
    S: Service<ToolRequest>,
    L: Layer<S, Service: Service<ToolRequest>>,
{
    let governed = layer.layer(inner);
    size_of_future(&governed) - size_of::<S::Future>()
}

const fn size_of_future<S: Service<ToolRequest>>(_: &S) -> usize {
    size_of::<S::Future>()
}

/// An engine whose future has no spare values, as that of an `async` block.
fn plain() -> impl Service<
    ToolRequest,
    Response = ToolResponse,
    Error = BoxError,
    Future: Future<Output = Result<ToolResponse, BoxError>>,
> {
    service_fn(|request: ToolRequest| async {
        std::future::pending::<()>().await;
        drop(request);
        Err::<ToolResponse, BoxError>("no answer".into())
    })
}

/// An engine whose future is ready, and has spare values.
fn ready()
-> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future = Ready<Result<ToolResponse, BoxError>>>
{
    service_fn(|_: ToolRequest| std::future::ready(Err("no answer".into())))
}

#[test]
fn a_future_grows_by_what_its_layer_has_to_remember() {
    let (schemas, receipts) = (SchemaScrubLayer::new(), ReceiptMappingLayer::new());
    let (profile, arguments) = (ProfileFilterLayer::new(Profile::Observe), ArgumentScrubLayer::new());
    let stack = GovernanceLayer::new(Profile::Observe);
    let over_ready = [
        added(ready(), &schemas),
        added(ready(), &profile),
        added(ready(), &receipts),
        added(ready(), &arguments),
        added(ready(), &stack),
    ];
    let over_plain = [
        added(plain(), &schemas),
        added(plain(), &profile),
        added(plain(), &receipts),
        added(plain(), &arguments),
        added(plain(), &stack),
    ];
    assert_eq!(over_ready.map(|bytes| bytes / WORD), [1, 1, 2, 0, 1]);
    assert_eq!(over_plain.map(|bytes| bytes / WORD), [1, 2, 3, 1, 2]);
}

#[test]
fn a_layer_is_a_few_words() {
    let words = [
        size_of::<ToolNames>(),
        size_of::<HiddenFields>(),
        size_of::<ProfileFilterLayer>(),
        size_of::<SchemaScrubLayer>(),
        size_of::<ArgumentScrubLayer>(),
    ]
    .map(|bytes| bytes / WORD);
    assert_eq!(words, [2, 4, 3, 6, 6]);
}

/// An object is three words, and nine where another crate has `serde_json` keep its order.
#[test]
fn what_every_call_moves_is_no_larger_than_it_was() {
    let (request, response) = match size_of::<JsonObject>() / WORD {
        3 => (19, 28),
        9 => (29, 30),
        other => panic!("an object of {other} words"),
    };
    assert!(size_of::<ToolRequest>() <= request * WORD, "{}", size_of::<ToolRequest>());
    assert!(size_of::<ToolResponse>() <= response * WORD, "{}", size_of::<ToolResponse>());
    assert!(size_of::<tower_algenta::Error>() <= 4 * WORD, "{}", size_of::<tower_algenta::Error>());
}
