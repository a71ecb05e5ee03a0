//! Answers that come byte by byte: in time they are answers, and no later than the call's timeout is their end.

use std::time::{Duration, Instant};

use tower_algenta::client::CallErrorKind;

use super::{ByHand, Outcome, SOON, cause, execute, head, receipt};
use crate::{
    client::scripted::{Reply, Request, Step},
    real_servers::Generation,
};

const PAUSE: Duration = Duration::from_millis(1);

/// What is slow: the head, or the body, of an answer of this kind.
#[derive(Clone, Copy, Debug)]
enum Slow {
    Head,
    Json,
    Event,
}

impl Slow {
    const ALL: [Self; 3] = [Self::Head, Self::Json, Self::Event];

    fn reply(self, request: &Request, pause: Duration) -> Reply {
        let answer = receipt(request).to_string();
        let length = format!("content-length: {}\r\n", answer.len());
        Reply::Steps(match self {
            Self::Head => {
                vec![Step::Slowly(head("application/json", &length), pause), Step::Bytes(answer.into())]
            }
            Self::Json => {
                vec![Step::Bytes(head("application/json", &length)), Step::Slowly(answer.into(), pause)]
            }
            Self::Event => {
                let event = format!("data: {answer}\n\n");
                vec![Step::Bytes(head("text/event-stream", "")), Step::Slowly(event.into(), pause), Step::Close]
            }
        })
    }
}

async fn engine(slow: Slow, generation: Generation, pause: Duration, patience: Duration) -> ByHand {
    ByHand::start(generation, patience, move |request| {
        (request.method() == "tools/call").then(|| slow.reply(request, pause))
    })
    .await
}

#[tokio::test]
async fn an_answer_that_drips_in_time_is_an_answer() {
    for generation in Generation::BOTH {
        for slow in Slow::ALL {
            let engine = engine(slow, generation, PAUSE, SOON).await;
            assert_eq!(engine.execute("decision-7").await, Outcome::Receipt, "{slow:?}, {generation:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_drips_for_too_long_ends_at_the_timeout() {
    let patience = Duration::from_millis(250);
    for generation in Generation::BOTH {
        for slow in Slow::ALL {
            // No pause between two bytes is as long as the timeout, which is the whole call's.
            let engine = engine(slow, generation, patience / 8, patience).await;
            let begun = Instant::now();
            let result = execute(&engine.tools, "decision-7").await;
            let elapsed = begun.elapsed();
            assert_eq!(Outcome::of(&result), Outcome::Unknown, "{slow:?}, {generation:?}");
            assert_eq!(cause(&result.unwrap_err()), CallErrorKind::TimedOut(patience));
            assert!(elapsed >= patience, "{slow:?}, {generation:?}: not before {elapsed:?}");
            assert!(elapsed < patience + Duration::from_secs(5), "{slow:?}, {generation:?}: {elapsed:?}");
            assert_eq!(engine.calls(), 1);
        }
    }
}

#[tokio::test]
async fn an_engine_that_says_nothing_ends_at_the_timeout_and_the_client_goes_on() {
    let patience = Duration::from_millis(250);
    for generation in Generation::BOTH {
        let engine = ByHand::start(generation, patience, |request| {
            let is_silent = request.body["params"]["arguments"]["decision_id"] == "decision-silent";
            is_silent.then_some(Reply::Silence)
        })
        .await;
        for _ in 0..3 {
            assert_eq!(engine.execute("decision-silent").await, Outcome::Unknown, "{generation:?}");
        }
        assert_eq!(engine.execute("decision-7").await, Outcome::Receipt, "{generation:?}");
        assert_eq!(engine.calls(), 4);
    }
}
