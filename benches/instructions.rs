//! Instruction counts: they don't depend on the clock, so they decide whether a change lands.
//!
//! `cargo bench --bench instructions` counts with valgrind's callgrind, prints each figure beside its goal and fails past
//! a limit. Where valgrind isn't installed it says that it skipped. `-- --all` prints the counts of all cases as well.

mod cases;

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use cases::services::{Bare, Fused, boxed_futures, boxed_services, drive, identities};
use serde_json::Value;
use tower::{Layer, Service};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, ExecutionBlocked, ExecutionReceipt, GovernanceLayer, HiddenFields, Matching, Profile,
    ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer, ToolRequest, ToolResponse,
};

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

fn clean_call() -> ToolRequest {
    ToolRequest::call("simulate", cases::five_keys())
}

fn flat_call() -> ToolRequest {
    ToolRequest::call("simulate", cases::flat(5))
}

fn stack(cases: &mut Cases) {
    cases.add_call("stack/bare", Bare, clean_call);
    cases.add_call("stack/identities", identities(Bare), clean_call);
    cases.add_call("stack/fused", Fused::new(Bare, Profile::Observe), clean_call);
    cases.add_call("stack/four", GovernanceLayer::new(Profile::Observe).layer(Bare), clean_call);
    cases.add_call("stack/bare_flat", Bare, flat_call);
    cases.add_call("stack/four_flat", GovernanceLayer::new(Profile::Observe).layer(Bare), flat_call);
    cases.add_call("stack/fused_flat", Fused::new(Bare, Profile::Observe), flat_call);
    cases.add_call("stack/boxed_futures", boxed_futures(Profile::Observe), clean_call);
    cases.add_call("stack/boxed_services", boxed_services(Profile::Observe), clean_call);
    cases.add_call("stack/schema_scrub", SchemaScrubLayer::new().layer(Bare), clean_call);
    cases.add_call("stack/profile_filter", ProfileFilterLayer::new(Profile::Observe).layer(Bare), clean_call);
    cases.add_call("stack/receipt_mapping", ReceiptMappingLayer::new().layer(Bare), clean_call);
    cases.add_call("stack/argument_scrub", ArgumentScrubLayer::new().layer(Bare), clean_call);
}

fn scrub(cases: &mut Cases) {
    fn clean(
        cases: &mut Cases,
        name: String,
        fields: HiddenFields,
        tool: &'static str,
        keys: usize,
        make: fn(usize) -> rmcp::model::JsonObject,
    ) {
        cases.add(name, move || {
            let (fields, mut arguments) = (fields.clone(), make(keys));
            Box::new(move || drop(black_box(fields.scrub_arguments(tool, black_box(&mut arguments)))))
        });
    }
    for keys in cases::KEYS.into_iter().filter(|keys| *keys <= 500).chain([2000]) {
        clean(cases, format!("scrub/flat/{keys}"), HiddenFields::new(), "simulate", keys, cases::flat);
        let exact = HiddenFields::new().matching(Matching::Exact);
        clean(cases, format!("scrub/exact/{keys}"), exact, "simulate", keys, cases::flat);
        clean(cases, format!("scrub/nested/{keys}"), HiddenFields::new(), "query_batch", keys, cases::arguments);
        cases.add(format!("scrub/touch/{keys}"), move || {
            let arguments = cases::flat(keys);
            Box::new(move || _ = black_box(cases::touch_each_key(black_box(&arguments))))
        });
        cases.add(format!("scrub/touch_nested/{keys}"), move || {
            let arguments = cases::arguments(keys);
            Box::new(move || _ = black_box(cases::touch_all_keys(black_box(&arguments))))
        });
    }
    let dirty = || cases::with_switches(cases::five_keys());
    cases.add("scrub/dirty", move || {
        let (fields, mut arguments) = (HiddenFields::new(), dirty());
        Box::new(move || drop(black_box(fields.scrub_arguments("simulate", black_box(&mut arguments)))))
    });
    cases.add("scrub/clone_and_filter", move || {
        let arguments = dirty();
        Box::new(move || drop(black_box(cases::clone_and_filter(black_box(&arguments)))))
    });
}

fn schema(cases: &mut Cases) {
    for count in [7, 28, 138, 552] {
        cases.add(format!("schema/scrub/{count}"), move || {
            let (fields, mut tools) = (HiddenFields::new(), cases::clean_tools(count));
            Box::new(move || {
                for tool in black_box(&mut tools) {
                    let name = std::mem::take(&mut tool.name);
                    let _ = black_box(fields.scrub_tool(&name, tool));
                    tool.name = name;
                }
            })
        });
    }
    cases.add("schema/touch/138", || {
        let tools = cases::clean_tools(138);
        Box::new(move || {
            let keys = black_box(&tools).iter().map(|tool| cases::touch_all_keys(&tool.input_schema));
            _ = black_box(keys.sum::<usize>());
        })
    });
    cases.add("schema/parse/138", || {
        let list = rmcp::model::ListToolsResult::with_all_items(cases::clean_tools(138));
        let text = serde_json::to_string(&list).expect("JSON");
        Box::new(move || drop(black_box(serde_json::from_str::<rmcp::model::ListToolsResult>(black_box(&text)))))
    });
}

fn names(cases: &mut Cases) {
    for profile in [Profile::Observe, Profile::Execute, Profile::Full] {
        cases.add(format!("profile/has/{profile}"), move || {
            Box::new(move || {
                for name in black_box(cases::NAMES) {
                    black_box(black_box(profile).has(name));
                }
            })
        });
    }
    cases.add("profile/touch", || {
        Box::new(|| {
            for name in black_box(cases::NAMES) {
                black_box(name.len());
            }
        })
    });
}

fn receipt(cases: &mut Cases) {
    cases.add("receipt/text", || {
        let result = cases::receipt();
        Box::new(move || drop(black_box(ExecutionReceipt::from_result(black_box(&result)))))
    });
    cases.add("receipt/via_value", || {
        let text = cases::text_of(&cases::receipt());
        Box::new(move || {
            let value: Value = serde_json::from_str(black_box(&text)).expect("JSON");
            drop(black_box(ExecutionReceipt::from_value(&value)));
        })
    });
    cases.add("receipt/parse_map", || {
        let text = cases::text_of(&cases::receipt());
        Box::new(move || drop(black_box(serde_json::from_str::<rmcp::model::JsonObject>(black_box(&text)))))
    });
    cases.add("receipt/skip", || {
        let text = cases::text_of(&cases::receipt());
        Box::new(move || drop(black_box(serde_json::from_str::<serde::de::IgnoredAny>(black_box(&text)))))
    });
    let structured = || {
        let mut result = cases::receipt();
        result.structured_content = serde_json::from_str(&cases::text_of(&result)).ok();
        result.content.clear();
        result
    };
    cases.add("receipt/structured", move || {
        let result = structured();
        Box::new(move || drop(black_box(ExecutionReceipt::from_result(black_box(&result)))))
    });
    cases.add("receipt/structured_clone", move || {
        let result = structured();
        Box::new(move || drop(black_box(black_box(&result).structured_content.clone())))
    });
    cases.add_call(
        "receipt/stack",
        GovernanceLayer::new(Profile::Execute).layer(cases::services::Engine::answering(cases::receipt)),
        || {
            ToolRequest::call(
                "execute_decision",
                rmcp::object!({"decision_id": "dec_1", "webhook_url": "http://127.0.0.1:18802/hook"}),
            )
        },
    );
    cases.add_call("receipt/bare", cases::services::Engine::answering(cases::receipt), || {
        ToolRequest::call(
            "execute_decision",
            rmcp::object!({"decision_id": "dec_1", "webhook_url": "http://127.0.0.1:18802/hook"}),
        )
    });
    for size in [1 << 14, 1 << 16] {
        cases.add(format!("receipt/large/{size}"), move || {
            let result = cases::text_result(cases::large_receipt(size));
            Box::new(move || drop(black_box(ExecutionReceipt::from_result(black_box(&result)))))
        });
    }
}

fn denial(cases: &mut Cases) {
    cases.add("denial/text", || {
        let result = cases::denial();
        Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
    });
    cases.add("denial/via_value", || {
        let text = cases::text_of(&cases::denial());
        Box::new(move || {
            let value: Value = serde_json::from_str(black_box(&text)).expect("JSON");
            drop(black_box(ExecutionBlocked::from_value(&value)));
        })
    });
    cases.add("denial/prose", || {
        let result = cases::text_result("x ".repeat(1 << 15));
        Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
    });
    cases.add("denial/long_prefix", || {
        let text = cases::text_of(&cases::denial());
        let result = cases::text_result("x ".repeat(1 << 15) + &text);
        Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
    });
    cases.add("denial/memchr", || {
        let text = "x ".repeat(1 << 15);
        Box::new(move || _ = black_box(memchr::memchr(b'{', black_box(text.as_bytes()))))
    });
    for (shape, piece) in cases::HOSTILE {
        for size in [1 << 14, 1 << 16] {
            cases.add(format!("denial/hostile/{shape}/{size}"), move || {
                let result = cases::text_result(cases::repeated(piece, size));
                Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
            });
        }
    }
}

fn all_cases() -> Cases {
    let mut cases = Cases::default();
    cases.add("nothing", || Box::new(|| ()));
    stack(&mut cases);
    scrub(&mut cases);
    schema(&mut cases);
    names(&mut cases);
    receipt(&mut cases);
    denial(&mut cases);
    cases
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
    let mut cases = all_cases();
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
        Ok(counts) => report(&cases, &counts, has("--all")),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One line of the report: a figure, the goal that was set for it, and the limit past which the gate fails.
struct Figure {
    name: &'static str,
    value: f64,
    goal: f64,
    limit: f64,
}

fn figures(counts: &BTreeMap<String, u64>) -> Vec<Figure> {
    #[expect(clippy::cast_precision_loss, reason = "no count comes near 2^52")]
    let of = |name: &str| counts[name] as f64;
    let over = |name: &str, base: &str| of(name) - of(base);
    let ratio = |name: &str, base: &str| of(name) / of(base);
    let figure = |name, value, goal, limit| Figure { name, value, goal, limit };
    let long_prefix = of("denial/long_prefix") / (of("denial/text") + of("denial/memchr"));
    let growths = cases::HOSTILE
        .map(|(shape, _)| ratio(&format!("denial/hostile/{shape}/65536"), &format!("denial/hostile/{shape}/16384")));
    let per_byte = cases::HOSTILE.map(|(shape, _)| of(&format!("denial/hostile/{shape}/65536")) / 65536.0);
    let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    vec![
        figure("four layers over bare, 5 nested keys", over("stack/four", "stack/bare"), 420.0, 1400.0),
        figure("four layers over bare, 5 flat keys", over("stack/four_flat", "stack/bare_flat"), 420.0, 800.0),
        figure("four layers / hand-fused, nested", ratio("stack/four", "stack/fused"), 1.25, 1.1),
        figure("four layers / hand-fused, flat", ratio("stack/four_flat", "stack/fused_flat"), 1.25, 1.2),
        figure("identity layers / bare", ratio("stack/identities", "stack/bare"), 1.0, 1.0),
        figure("scrub / touch each key, 5 keys", ratio("scrub/flat/5", "scrub/touch/5"), 1.5, 2.0),
        figure("scrub / touch each key, 50 keys", ratio("scrub/flat/50", "scrub/touch/50"), 1.5, 1.5),
        figure("scrub / touch all keys, 50 nested", ratio("scrub/nested/50", "scrub/touch_nested/50"), 1.5, 1.5),
        figure("scrub of 2000 keys / of 500", ratio("scrub/flat/2000", "scrub/flat/500"), 4.0, 4.1),
        figure("dirty scrub / clone and filter", ratio("scrub/dirty", "scrub/clone_and_filter"), 0.5, 0.5),
        figure("schemas / parsing them", ratio("schema/scrub/138", "schema/parse/138"), 0.03, 0.062),
        figure("schemas of 552 tools / of 138", ratio("schema/scrub/552", "schema/scrub/138"), 4.0, 4.1),
        figure("a name in a profile", over("profile/has/observe", "profile/touch") / 8.0, 30.0, 30.0),
        figure("receipt from text", of("receipt/text"), 5500.0, 8600.0),
        figure("receipt from text / via Value", ratio("receipt/text", "receipt/via_value"), 0.35, 0.4),
        figure("receipt, structured / its clone", ratio("receipt/structured", "receipt/structured_clone"), 0.1, 1.55),
        figure("receipt of 64 KiB / of 16 KiB", ratio("receipt/large/65536", "receipt/large/16384"), 4.0, 4.1),
        figure("denial from text / via Value", ratio("denial/text", "denial/via_value"), 0.45, 0.9),
        figure("text without braces / memchr", ratio("denial/prose", "denial/memchr"), 1.5, 1.5),
        figure("long prefix / a denial and memchr", long_prefix, 1.5, 1.5),
        figure("hostile text, instructions per byte", largest(&per_byte), 24.0, 250.0),
        figure("hostile text, 4 times the input", largest(&growths), 5.0, 5.0),
    ]
}

fn report(cases: &Cases, counts: &BTreeMap<String, u64>, is_full: bool) -> ExitCode {
    if is_full {
        for (name, _) in &cases.all {
            println!("{:>12}  {name}", counts[name]);
        }
    }
    println!("{:<40} {:>10} {:>10} {:>10}", "figure", "measured", "goal", "limit");
    let mut is_past = false;
    for Figure { name, value, goal, limit } in figures(counts) {
        let verdict = if value > limit { " PAST THE LIMIT" } else { "" };
        is_past |= value > limit;
        println!("{name:<40} {value:>10.3} {goal:>10.3} {limit:>10.3}{verdict}");
    }
    if is_past { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
