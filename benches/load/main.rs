//! Load over loopback: the hop through the gateway beside the hop through a proxy that governs nothing.
//!
//! ```sh
//! cargo bench --bench load                                 # both hops, taking turns: latency, then throughput
//! cargo bench --bench load -- --soak 1800 --rate 300       # half an hour through the gateway, and its memory
//! ```
//!
//! The engine, the proxy and the gateway are processes of their own, on free ports of this machine. Nothing else is called.

#[path = "../cases/mod.rs"]
mod cases;
mod driver;
mod processes;
mod roles;

use std::{error::Error, time::Duration};

use clap::{Parser, ValueEnum};
use hdrhistogram::Histogram;

use driver::{Driver, Told};
use processes::Process;

/// The engine without a hop, and four ways to it.
const HOPS: usize = 5;

/// The hops that are compared: the layers alone, with this crate's server and client, and the program.
const PAIRS: [(usize, usize); 3] = [(3, 2), (3, 1), (4, 1)];

#[derive(Parser)]
#[command(about = "Drives load through the gateway, and through a proxy that governs nothing.")]
struct Args {
    /// Requests a second, sent when they are due, whether or not earlier ones have been answered.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    rate: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Measurements of each hop.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Clients, each with connections of its own.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: u16,
    /// Drives the gateway alone for so many seconds instead, and looks at its memory twenty times.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=7200))]
    soak: Option<u64>,
    /// Runs everything for a moment and compares nothing.
    #[arg(long)]
    test: bool,
    #[arg(long, hide = true)]
    bench: bool,
    #[arg(long, hide = true)]
    role: Option<Role>,
    #[arg(long, hide = true, requires = "role")]
    upstream: Option<String>,
}

/// What one of the processes is.
#[derive(Clone, Copy, ValueEnum)]
enum Role {
    /// The tools.
    Engine,
    /// What rmcp's types make of a proxy in the fewest lines.
    Proxy,
    /// This crate's server and client behind the same HTTP as the proxy's, and nothing in between.
    Plain,
    /// As `Plain`, with the four layers in between.
    Governed,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::parse();
    if args.test {
        (args.seconds, args.rounds, args.rate, args.clients) = (1, 1, 100, 2);
    }
    match args.role {
        // As the gateway: on all cores.
        Some(role) => tokio::runtime::Runtime::new()?.block_on(roles::serve(role, args.upstream)),
        None => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure(&args)),
    }
}

async fn measure(args: &Args) -> Result<(), Box<dyn Error>> {
    let engine = Process::of_role("engine", None).await?;
    let gateway = Process::gateway(&engine.url).await?;
    if let Some(seconds) = args.soak {
        return soak(args, &gateway, seconds).await;
    }
    let proxy = Process::of_role("proxy", Some(&engine.url)).await?;
    let plain = Process::of_role("plain", Some(&engine.url)).await?;
    let governed = Process::of_role("governed", Some(&engine.url)).await?;
    let processes = [engine, proxy, plain, governed, gateway];
    let mut drivers = Vec::new();
    for process in &processes {
        drivers.push(Driver::connect(&process.url, args.clients).await?);
    }
    let time = Duration::from_secs(args.seconds);
    let warm_up = Duration::from_secs(1);
    for driver in &drivers {
        driver.at_rate(args.rate, warm_up).await?;
    }

    println!(
        "latency of {} requests a second, from when each was due, in {} rounds of {time:?}",
        args.rate, args.rounds
    );
    let mut latencies = [const { Vec::new() }; HOPS];
    for round in 0..args.rounds {
        for hop in in_turn(round) {
            latencies[hop].push(drivers[hop].at_rate(args.rate, time).await?);
        }
    }
    for (process, told) in processes.iter().zip(&latencies) {
        print(process.name, &Told::sum(told));
    }
    let pairs =
        PAIRS.map(|(hop, base)| (hop, base, format!("of {} over {}", processes[hop].name, processes[base].name)));
    for (hop, base, pair) in &pairs {
        ratio(&format!("p50 {pair}"), args.rounds, |round| {
            p50(&latencies[*hop][round].latencies) / p50(&latencies[*base][round].latencies)
        });
    }

    println!("\nthroughput of {} clients that send when they have been answered", args.clients);
    let mut rates = [const { Vec::new() }; HOPS];
    let mut work = [const { Vec::new() }; HOPS];
    for round in 0..args.rounds {
        for hop in in_turn(round) {
            let before = processes[hop].worked();
            let (answered, took) = drivers[hop].at_full_speed(time).await?;
            work[hop].push((processes[hop].worked() - before) / answered);
            rates[hop].push(answered / took.as_secs_f64());
        }
    }
    for (hop, process) in processes.iter().enumerate() {
        let (rate, work) = (median(&mut rates[hop].clone()), median(&mut work[hop].clone()));
        println!("  {:8} {rate:6.0} a second, {:.0} µs of work each, {}", process.name, work * 1e6, process.memory());
    }
    for (hop, base, pair) in &pairs {
        ratio(&format!("throughput {pair}"), args.rounds, |round| rates[*hop][round] / rates[*base][round]);
        ratio(&format!("work {pair}"), args.rounds, |round| work[*hop][round] / work[*base][round]);
    }
    Ok(())
}

/// The hops of a round. Each goes first and last as often as the others.
fn in_turn(round: u32) -> impl Iterator<Item = usize> {
    (0..HOPS).map(move |hop| (hop + round as usize) % HOPS)
}

async fn soak(args: &Args, gateway: &Process, seconds: u64) -> Result<(), Box<dyn Error>> {
    const LOOKS: u32 = 20;
    let driver = Driver::connect(&gateway.url, args.clients).await?;
    println!("{} requests a second through the gateway for {seconds} s", args.rate);
    println!("  at the start, {}", gateway.memory());
    let mut all = Vec::new();
    for _ in 0..LOOKS {
        let told = driver.at_rate(args.rate, Duration::from_secs(seconds) / LOOKS).await?;
        print(&gateway.memory().to_string(), &told);
        all.push(told);
    }
    print("all", &Told::sum(&all));
    Ok(())
}

fn print(name: &str, told: &Told) {
    let millis = |quantile| to_f64(told.latencies.value_at_quantile(quantile)) / 1e6;
    println!(
        "  {name:8} p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms, longest {:.1} ms; {} answered, {} errors",
        millis(0.5),
        millis(0.99),
        millis(0.999),
        to_f64(told.latencies.max()) / 1e6,
        told.latencies.len(),
        told.errors,
    );
}

/// The median of a ratio over the rounds, and what lies between a quarter of them and three quarters.
fn ratio(what: &str, rounds: u32, of: impl Fn(usize) -> f64) {
    let mut ratios: Vec<f64> = (0..rounds as usize).map(of).collect();
    let middle = median(&mut ratios);
    println!("  {what}: {middle:.4} ({:.4} to {:.4})", ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]);
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[half - 1], values[half]) } else { values[half] }
}

fn p50(latencies: &Histogram<u64>) -> f64 {
    to_f64(latencies.value_at_quantile(0.5))
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of less than a month")]
const fn to_f64(value: u64) -> f64 {
    value as f64
}
