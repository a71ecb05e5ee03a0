//! What a governed stack owes its user, as checks that take the stack: `zoo` runs them on wrong ones, and each has to
//! find the wrong one out.

use tower::util::BoxCloneSyncService;
use tower_algenta::{BoxError, ToolRequest, ToolResponse};

pub(crate) type Boxed = BoxCloneSyncService<ToolRequest, ToolResponse, BoxError>;
