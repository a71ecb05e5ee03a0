//! The `_meta` of a request that goes on to the engine.

use rmcp::model::{Extensions, MetaObject, RequestMetaObject};

const PROGRESS_TOKEN: &str = "progressToken";
const PROTOCOL_KEYS: &str = "io.modelcontextprotocol/";

/// Takes every `_meta` of a request together, in the order in which rmcp's serialisation lets one win over the other.
///
/// rmcp's typed methods send the parameters and drop the extensions, which is where decoding has put `_meta`. What
/// belongs to the caller's own connection stays behind: with its protocol version, for one, rmcp would label this one.
pub(super) fn take(params: Option<RequestMetaObject>, extensions: &mut Extensions) -> Option<RequestMetaObject> {
    let mut meta = params.unwrap_or_default();
    if let Some(older) = extensions.remove::<MetaObject>() {
        meta.extend(RequestMetaObject(older));
    }
    if let Some(decoded) = extensions.remove() {
        meta.extend(decoded);
    }
    meta.retain(|key, _| key != PROGRESS_TOKEN && !key.starts_with(PROTOCOL_KEYS));
    (!meta.is_empty()).then_some(meta)
}
