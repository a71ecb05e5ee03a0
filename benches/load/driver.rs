//! What sends the requests, and writes down how long each took.

use std::{
    error::Error,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::Instant};
use tower::ServiceExt as _;
use tower_algenta::{Endpoint, EngineClient, ToolRequest};

use crate::cases;

/// Requests that may be under way. One that comes due beyond them is an error, and not sent.
const UNDER_WAY: usize = 4096;
/// More nanoseconds than any client waits.
const LONGEST: u64 = 120_000_000_000;

/// Clients of one server, which take turns. They govern nothing: what is measured is the hop.
pub(crate) struct Driver {
    clients: Vec<EngineClient>,
}

/// What came of some requests.
#[derive(Clone)]
pub(crate) struct Told {
    /// In nanoseconds, of those that were answered.
    pub(crate) latencies: Histogram<u64>,
    pub(crate) errors: u64,
}

impl Told {
    fn new() -> Self {
        Self { latencies: Histogram::new_with_max(LONGEST, 3).expect("three digits below a limit"), errors: 0 }
    }

    pub(crate) fn sum(all: &[Self]) -> Self {
        let mut sum = Self::new();
        for told in all {
            sum.latencies += &told.latencies;
            sum.errors += told.errors;
        }
        sum
    }
}

impl Driver {
    pub(crate) async fn connect(url: &str, clients: u16) -> Result<Self, Box<dyn Error>> {
        let mut driver = Self { clients: Vec::new() };
        for _ in 0..clients {
            driver.clients.push(EngineClient::connect(Endpoint::new(url)?).await?);
        }
        Ok(driver)
    }

    /// Sends each request when it is due. What waits for a server that is slow counts as its latency.
    pub(crate) async fn at_rate(&self, rate: u32, time: Duration) -> Result<Told, Box<dyn Error>> {
        let told = Arc::new(Mutex::new(Told::new()));
        let under_way = Arc::new(AtomicUsize::new(0));
        let mut requests = JoinSet::new();
        let begun = Instant::now();
        for number in 0.. {
            let due = begun + Duration::from_secs(1) * number / rate;
            if due - begun >= time {
                break;
            }
            tokio::time::sleep_until(due).await;
            while requests.try_join_next().is_some() {}
            let client = self.clients[number as usize % self.clients.len()].clone();
            let (told, under_way) = (Arc::clone(&told), Arc::clone(&under_way));
            if under_way.fetch_add(1, Ordering::Relaxed) >= UNDER_WAY {
                under_way.fetch_sub(1, Ordering::Relaxed);
                told.lock().unwrap_or_else(PoisonError::into_inner).errors += 1;
                continue;
            }
            requests.spawn(async move {
                let answer = client.oneshot(request(number)).await;
                let took = due.elapsed();
                under_way.fetch_sub(1, Ordering::Relaxed);
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                match answer {
                    Ok(_) => told.latencies.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
                    Err(_) => told.errors += 1,
                }
            });
        }
        while let Some(ended) = requests.join_next().await {
            ended?;
        }
        let told = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(told)
    }

    /// Has each client send its next request when the last one is answered: how many were, and in what time.
    pub(crate) async fn at_full_speed(&self, time: Duration) -> Result<(f64, Duration), Box<dyn Error>> {
        let answered = Arc::new(AtomicU64::new(0));
        let mut clients = JoinSet::new();
        let begun = Instant::now();
        for client in &self.clients {
            let (client, answered) = (client.clone(), Arc::clone(&answered));
            clients.spawn(async move {
                let mut number = 0;
                while begun.elapsed() < time {
                    client.clone().oneshot(request(number)).await?;
                    answered.fetch_add(1, Ordering::Relaxed);
                    number += 1;
                }
                Ok::<_, tower_algenta::Error>(())
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended??;
        }
        Ok((crate::to_f64(answered.load(Ordering::Relaxed)), begun.elapsed()))
    }
}

/// Of twenty, seventeen call a tool, two execute a decision, and one lists the tools.
fn request(number: u32) -> ToolRequest {
    match number % 20 {
        0 => ToolRequest::list(),
        7 | 14 => ToolRequest::call("execute_decision", cases::execution()),
        _ => ToolRequest::call("simulate", cases::five_keys()),
    }
}
