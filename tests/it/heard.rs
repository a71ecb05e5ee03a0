//! A subscriber that writes down what the crate reports.

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// The events so far, one line each: the level, the target, and every field with its value.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    /// What is heard while `work` runs, on this thread.
    pub(crate) fn during(work: impl FnOnce()) -> Vec<String> {
        let heard = Self::default();
        tracing::subscriber::with_default(heard.clone(), work);
        std::mem::take(&mut *heard.0.lock().unwrap())
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("tower_algenta")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
