//! The reports of one call, on their way to the caller.

use std::{collections::VecDeque, pin::pin, time::Duration};

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use tokio::sync::mpsc;

use crate::ProgressSink;

/// Reports that wait for their turn. Of more, the newest are kept.
const WAITING: usize = 16;

/// How long an answer waits for the reports before it to be taken.
const BEFORE_ANSWER: Duration = Duration::from_secs(1);

/// Passes the reports of one call on.
pub(super) struct Progress {
    reports: mpsc::Receiver<ProgressNotificationParam>,
    token: ProgressToken,
    with_message: bool,
    peer: Peer<RoleServer>,
    waiting: VecDeque<ProgressNotificationParam>,
    last: f64,
}

impl Progress {
    /// What passes on to `token` of `peer`'s, and the sink for the reports.
    pub(super) fn new(token: ProgressToken, with_message: bool, peer: Peer<RoleServer>) -> (ProgressSink, Self) {
        let (sink, reports) = ProgressSink::channel(WAITING);
        (sink, Self { reports, token, with_message, peer, waiting: VecDeque::new(), last: f64::NEG_INFINITY })
    }

    /// Awaits `call` and passes on what is reported in the meantime.
    ///
    /// The call goes on while the caller takes no reports, or its timeouts would stand still.
    pub(super) async fn relay<T>(&mut self, call: impl Future<Output = T>) -> T {
        // Boxed, since most calls have none to send.
        let mut sending = None;
        let mut told = Vec::new();
        let answer = {
            let mut call = pin!(call);
            loop {
                if sending.is_none() {
                    sending = self.next().map(Box::pin);
                }
                tokio::select! {
                    answer = &mut call => break answer,
                    () = async { if let Some(sending) = &mut sending { sending.await } }, if sending.is_some() => {
                        sending = None;
                    }
                    1.. = self.reports.recv_many(&mut told, WAITING) => told.drain(..).for_each(|report| self.keep(report)),
                }
            }
        };
        let rest = async {
            if let Some(sending) = sending {
                sending.await;
            }
            while let Ok(report) = self.reports.try_recv() {
                self.keep(report);
            }
            while let Some(next) = self.next() {
                next.await;
            }
        };
        // A caller who takes none of it gets the answer all the same.
        let _ = tokio::time::timeout(BEFORE_ANSWER, rest).await;
        answer
    }

    /// Keeps a report that says more than those before. They may overtake each other; to the caller, progress only grows.
    fn keep(&mut self, report: ProgressNotificationParam) {
        if report.progress > self.last {
            self.last = report.progress;
            if self.waiting.len() == WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back(report);
        }
    }

    /// Sends the report whose turn it is, if there is one.
    fn next(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        let mut report = self.waiting.pop_front()?;
        report.progress_token = self.token.clone();
        report.meta = None;
        if !self.with_message {
            report.message = None;
        }
        let peer = self.peer.clone();
        Some(async move {
            // A caller who is gone has cancelled the call.
            let _ = peer.notify_progress(report).await;
        })
    }
}
