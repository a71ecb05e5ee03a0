//! Records as `tracing` events.

use tracing::{Level, field};

use super::{AuditRecord, AuditSink, Outcome};

/// Reports each record as an event with the target `tower_algenta::audit`: at `INFO` if the request was allowed, at `WARN`
/// otherwise. The fields have the names of the record's; the event's own time stands for its timestamp.
///
/// An event is no log: a subscriber may filter it, and nothing says whether anybody took it.
///
/// ```
/// # use tower_algenta::{AuditLayer, audit::Events};
/// let layer = AuditLayer::new(Events::new());
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Events;

impl Events {
    /// Creates the sink.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

macro_rules! event {
    ($level:expr, $record:ident) => {{
        let stripped = ($record.stripped_count() > 0).then_some($record.stripped_count());
        let pointers: Vec<&str> = $record.stripped().collect();
        let overrides: Vec<&str> = $record.overrides().collect();
        tracing::event!(
            target: "tower_algenta::audit",
            $level,
            "mcp.method.name" = $record.method(),
            "gen_ai.operation.name" = $record.operation(),
            "gen_ai.tool.name" = $record.tool(),
            "enduser.id" = $record.caller().map(super::Caller::as_str),
            "algenta.outcome" = $record.outcome().as_str(),
            "error.type" = $record.error_type(),
            "rpc.response.status_code" = $record.status_code().map(field::display),
            "algenta.reason" = $record.reason(),
            "algenta.gate" = $record.gate(),
            "algenta.may_have_run" = $record.may_have_run().then_some(true),
            "mcp.client.operation.duration" = $record.duration().as_secs_f64(),
            "algenta.stripped" = stripped.map(|_| field::debug(&pointers)),
            "algenta.stripped.count" = stripped,
            "algenta.overrides" = (!overrides.is_empty()).then(|| field::debug(&overrides)),
            "algenta.decision.id" = $record.decision_id(),
            "algenta.execution.status" = $record.execution_status(),
            "algenta.policy_snapshot.id" = $record.policy_snapshot_id(),
            "algenta.schema_snapshot.id" = $record.schema_snapshot_id(),
        );
    }};
}

impl AuditSink for Events {
    fn record(&self, record: &AuditRecord) {
        if record.outcome() == Outcome::Allowed {
            event!(Level::INFO, record);
        } else {
            event!(Level::WARN, record);
        }
    }
}
