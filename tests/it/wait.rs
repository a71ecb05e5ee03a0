//! Waiting for what another task does.

use std::time::Duration;

/// Waits until `done` holds.
pub(crate) async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let waited = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waited).await.unwrap_or_else(|_| panic!("{what}"));
}
