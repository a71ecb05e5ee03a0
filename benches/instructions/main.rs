//! Instruction counts: they don't depend on the clock, so they decide whether a change lands.
//!
//! `cargo bench --bench instructions` counts with valgrind's callgrind, prints each figure beside its goal and fails past
//! a limit. Where valgrind isn't installed it says that it skipped. `-- --all` prints the counts of all cases as well.

#[path = "../cases/mod.rs"]
mod cases;
mod figures;
mod work;

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use cases::services::drive;
use tower::Service;
use tower_algenta::{BoxError, ToolRequest, ToolResponse};

/// Tells the process that it is the one under valgrind.
const COUNTED: &str = "--counted";

type Work = Box<dyn FnMut()>;

/// What callgrind counts: it starts where this is entered and ends where this is left.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
}

/// The cases, in the order in which they run. Each makes its input when its turn comes.
#[derive(Default)]
struct Cases {
    all: Vec<(String, Box<dyn Fn() -> Work>)>,
}

impl Cases {
    fn add(&mut self, name: impl Into<String>, make: impl Fn() -> Work + 'static) {
        self.all.push((name.into(), Box::new(make)));
    }

    /// One call through `service`, its answer dropped.
    fn add_call<S>(&mut self, name: &str, service: S, request: fn() -> ToolRequest)
    where
        S: Service<ToolRequest, Response = ToolResponse, Error = BoxError> + Clone + 'static,
    {
        self.add(name, move || {
            let (mut service, mut request) = (service.clone(), Some(request()));
            Box::new(move || {
                if let Some(request) = request.take() {
                    let _ = black_box(drive(service.call(black_box(request))));
                }
            })
        });
    }
}

/// Runs every case: once to warm up, once to be counted.
fn run_all(cases: &Cases) {
    for (_, make) in &cases.all {
        make()();
        measured(&mut *make());
    }
}

/// The instructions of each case, without those of measuring.
fn count(cases: &Cases) -> Result<BTreeMap<String, u64>, Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("instructions-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let out = folder.join("out");
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--toggle-collect=instructions::measured"])
        .arg("--dump-after=instructions::measured")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe()?)
        .arg(COUNTED)
        .stdout(Stdio::null())
        .status()?;
    let counts = if status.success() { read_counts(cases, &out) } else { Err(format!("valgrind: {status}").into()) };
    fs::remove_dir_all(&folder)?;
    counts
}

fn read_counts(cases: &Cases, out: &Path) -> Result<BTreeMap<String, u64>, Box<dyn Error>> {
    let mut counts = BTreeMap::new();
    let mut empty = 0;
    for (index, (name, _)) in cases.all.iter().enumerate() {
        let part = fs::read_to_string(PathBuf::from(format!("{}.{}", out.display(), index + 1)))?;
        let total = part.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("no totals")?;
        let total: u64 = total.trim().parse()?;
        if index == 0 {
            empty = total;
        }
        counts.insert(name.clone(), total - empty);
    }
    Ok(counts)
}

fn main() -> ExitCode {
    let mut cases = work::all();
    // To look at one case with `callgrind_annotate`: `valgrind --tool=callgrind <binary> --counted --only=<case>`.
    if let Some(only) = env::args().find_map(|argument| argument.strip_prefix("--only=").map(str::to_owned)) {
        cases.all.retain(|(name, _)| *name == only);
    }
    let has = |flag: &str| env::args().any(|argument| argument == flag);
    if has(COUNTED) || has("--test") {
        run_all(&cases);
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: the instruction counts, for valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    match count(&cases) {
        Ok(counts) => figures::report(&cases, &counts, has("--all")),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
