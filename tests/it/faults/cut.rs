//! Connections that end in the middle of an answer, or of a request.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{ByHand, Outcome, SOON, execute, executing, head, receipt};
use crate::{
    client::scripted::{Reply, Request, Step},
    real_servers::Generation,
};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

/// How an answer is framed.
#[derive(Clone, Copy, Debug)]
enum Framed {
    /// JSON, of a length that the head tells.
    Json,
    /// JSON that lasts until the connection ends.
    JsonToTheEnd,
    /// An event, in a chunk.
    Event,
    /// An event, in a stream that lasts until the connection ends.
    EventToTheEnd,
}

impl Framed {
    const ALL: [Self; 4] = [Self::Json, Self::JsonToTheEnd, Self::Event, Self::EventToTheEnd];

    /// The whole response, and how many of its bytes hold the whole answer.
    fn response(self, request: &Request) -> (Vec<u8>, usize) {
        let answer = receipt(request).to_string();
        let event = format!("data: {answer}\n\n");
        let (head, body, after) = match self {
            Self::Json => {
                (head("application/json", &format!("content-length: {}\r\n", answer.len())), answer, String::new())
            }
            Self::JsonToTheEnd => (head("application/json", ""), answer, String::new()),
            Self::Event => (
                head("text/event-stream", "transfer-encoding: chunked\r\n"),
                format!("{:x}\r\n{event}", event.len()),
                "\r\n0\r\n\r\n".to_owned(),
            ),
            Self::EventToTheEnd => (head("text/event-stream", ""), event, String::new()),
        };
        let complete = head.len() + body.len();
        ([head, body.into(), after.into()].concat(), complete)
    }
}

/// Where an answer is cut: around the end of its head, around its own end, and at every seventh byte between.
/// At every byte with `EVERY_BYTE` in the environment.
fn is_cut_at(byte: usize, complete: usize, head: usize) -> bool {
    let every = if std::env::var_os("EVERY_BYTE").is_some() { 1 } else { 7 };
    byte.is_multiple_of(every) || byte.abs_diff(complete) < 4 || byte.abs_diff(head) < 4
}

/// Cuts the answer off, each time under a new call by the same client.
async fn cut(generation: Generation, end: Step) {
    for framed in Framed::ALL {
        let length = Arc::new(AtomicUsize::new(0));
        let known = Arc::new(Mutex::new((usize::MAX, 0)));
        let (kept, sizes, last) = (Arc::clone(&length), Arc::clone(&known), end.clone());
        let engine = ByHand::start(generation, SOON, move |request| {
            (request.method() == "tools/call").then(|| {
                let (mut bytes, complete) = framed.response(request);
                let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
                *sizes.lock().unwrap() = (complete, head);
                bytes.truncate(kept.load(Ordering::SeqCst));
                Reply::Steps(vec![Step::Bytes(bytes), last.clone()])
            })
        })
        .await;
        let mut cuts = 0;
        for byte in 0.. {
            let (complete, head) = *known.lock().unwrap();
            if !is_cut_at(byte, complete, head) {
                continue;
            }
            cuts += 1;
            length.store(byte, Ordering::SeqCst);
            let outcome = engine.execute("decision-7").await;
            // The ids of the calls grow, and the answers with them.
            let is_complete = byte >= known.lock().unwrap().0;
            let context = format!("{framed:?}, {generation:?}, {end:?} after {byte} bytes");
            match (is_complete, &end) {
                (true, Step::Close) => assert_eq!(outcome, Outcome::Receipt, "{context}"),
                // What has arrived may be lost with the rest.
                (true, _) => assert!(matches!(outcome, Outcome::Receipt | Outcome::Unknown), "{context}: {outcome:?}"),
                (false, _) => assert_eq!(outcome, Outcome::Unknown, "{context}"),
            }
            if is_complete {
                break;
            }
        }
        assert_eq!(engine.calls(), cuts, "{framed:?}, {generation:?}: one for each execution");
        assert!(cuts > 50, "{cuts}");
    }
}

#[tokio::test]
async fn a_connection_that_closes_at_any_byte_of_an_answer() {
    for generation in Generation::BOTH {
        cut(generation, Step::Close).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_at_any_byte_of_an_answer() {
    for generation in Generation::BOTH {
        cut(generation, Step::Reset).await;
    }
}

/// A connection that ends while the request is on its way: nobody can tell how much of it was read.
#[tokio::test]
async fn a_connection_that_ends_at_any_byte_of_a_request() {
    for generation in Generation::BOTH {
        // Each request needs a connection of its own, and the last one gets to a door that slams.
        let engine = ByHand::start(generation, SOON, move |request| {
            let reply = super::as_an_engine(generation, request);
            Some(if request.method() == "tools/call" { Reply::HangUp } else { reply.header("connection: close") })
        })
        .await;
        let length = {
            engine.execute("decision-7").await;
            let request = engine.server.received("tools/call").pop().unwrap();
            request.head.len() + 4 + request.body.to_string().len()
        };
        let addr = engine.server.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let client = engine.client.clone();
        drop(engine);
        let listener = loop {
            // The port is free as soon as the server's tasks are gone.
            match TcpListener::bind(&addr).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        for (count, reset) in (0..length).step_by(37).flat_map(|count| [(count, false), (count, true)]) {
            let slams = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut read = vec![0; count];
                stream.read_exact(&mut read).await.unwrap();
                if reset {
                    stream.set_zero_linger().unwrap();
                }
            };
            let tools = executing(&client);
            let (result, ()) = tokio::join!(execute(&tools, "decision-7"), slams);
            match Outcome::of(&result) {
                Outcome::Unknown => {}
                // The reset was there before the connection was: then nothing could be sent.
                Outcome::NotSent if count == 0 => {}
                other => panic!("{generation:?}, after {count} bytes: {other:?}"),
            }
        }
    }
}
