//! Where records go.

use std::{error, fmt, sync::Arc};

use super::AuditRecord;
use crate::Error;

/// Takes the records of an [`AuditLayer`](super::AuditLayer).
///
/// A pair of sinks is a sink, and so is an `Arc` of one.
///
/// ```
/// use std::sync::mpsc;
/// use tower_algenta::{AuditLayer, AuditRecord, AuditSink};
///
/// /// Hands the records to a thread.
/// #[derive(Clone)]
/// struct Channel(mpsc::Sender<AuditRecord>);
///
/// impl AuditSink for Channel {
///     fn record(&self, record: &AuditRecord) {
///         let _ = self.0.send(record.clone());
///     }
/// }
///
/// let (sender, records) = mpsc::channel();
/// let layer = AuditLayer::new(Channel(sender));
/// ```
pub trait AuditSink: Send + Sync {
    /// Takes a record.
    ///
    /// It is called where the call's future is polled or dropped, so it must neither block for long nor panic.
    fn record(&self, record: &AuditRecord);

    /// Whether the last record was lost. While it was, executions are refused; see
    /// [`OnSinkFailure`](super::OnSinkFailure).
    fn is_failing(&self) -> bool {
        false
    }
}

impl<T: AuditSink + ?Sized> AuditSink for Arc<T> {
    fn record(&self, record: &AuditRecord) {
        (**self).record(record);
    }

    fn is_failing(&self) -> bool {
        (**self).is_failing()
    }
}

impl<A: AuditSink, B: AuditSink> AuditSink for (A, B) {
    fn record(&self, record: &AuditRecord) {
        self.0.record(record);
        self.1.record(record);
    }

    fn is_failing(&self) -> bool {
        self.0.is_failing() || self.1.is_failing()
    }
}

/// An execution was refused, because its record would be lost. It is the source of an
/// [`Error::NotSent`](crate::Error::NotSent).
#[derive(Debug)]
pub struct AuditUnavailable(());

impl AuditUnavailable {
    pub(super) fn error() -> Error {
        Error::NotSent(Box::new(Self(())))
    }
}

impl fmt::Display for AuditUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the audit log cannot be written (see `OnSinkFailure`)")
    }
}

impl error::Error for AuditUnavailable {}
