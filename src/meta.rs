//! The `_meta` of a request that goes on to the engine.

use rmcp::model::RequestMetaObject;
#[cfg(feature = "client")]
use rmcp::model::{Extensions, MetaObject};

const PROGRESS_TOKEN: &str = "progressToken";
const PROTOCOL_KEYS: &str = "io.modelcontextprotocol/";

/// Takes every `_meta` of a request together, in the order in which rmcp's serialisation lets one win over the other.
///
/// rmcp's typed methods send the parameters and drop the extensions, which is where decoding has put `_meta`.
#[cfg(feature = "client")]
pub(crate) fn take(params: Option<RequestMetaObject>, extensions: &mut Extensions) -> Option<RequestMetaObject> {
    let mut meta = params.unwrap_or_default();
    if let Some(older) = extensions.remove::<MetaObject>() {
        meta.extend(RequestMetaObject(older));
    }
    if let Some(decoded) = extensions.remove() {
        meta.extend(decoded);
    }
    retain_forwarded(&mut meta);
    (!meta.is_empty()).then_some(meta)
}

/// Leaves behind what belongs to the caller's own connection: with its protocol version, for one, rmcp would label the
/// next one.
pub(crate) fn retain_forwarded(meta: &mut RequestMetaObject) {
    meta.retain(|key, _| key != PROGRESS_TOKEN && !key.starts_with(PROTOCOL_KEYS));
}
