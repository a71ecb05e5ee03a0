//! How often a broken event stream is resumed.

use std::time::Duration;

use rmcp::transport::common::client_side_sse::SseRetryPolicy;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const TIMES: usize = 5;

/// Resumes a stream after 0.25, 0.5, 1, 2 and 4 seconds. rmcp's own never gives up, and a call whose engine has died
/// would wait out its whole timeout.
#[derive(Debug)]
pub(super) struct BoundedRetry;

impl SseRetryPolicy for BoundedRetry {
    fn retry(&self, current_times: usize) -> Option<Duration> {
        let doublings = u32::try_from(current_times).ok().filter(|_| current_times < TIMES)?;
        Some(FIRST_PAUSE * 2_u32.pow(doublings))
    }
}
