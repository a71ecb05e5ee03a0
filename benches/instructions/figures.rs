//! The figures, beside their goals and limits.

use std::{collections::BTreeMap, process::ExitCode};

use crate::{Cases, cases};

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
    let prefixed = |size: usize| of(&format!("denial/long_prefix/{size}"));
    let memchr = |size: usize| of(&format!("denial/memchr/{size}"));
    let [page, full] = cases::PREFIXES;
    let a_tool = |name: &str, tools: f64| of(name) / tools;
    let mixed = a_tool("schema/scrub/5000", 5000.0) / a_tool("schema/scrub/138", 138.0);
    let same = a_tool("schema/scrub_of_seven/5000", 5000.0) / a_tool("schema/scrub/7", 7.0);
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
        figure("a tool of 5000 / of 138", mixed, 1.1, 1.1),
        figure("a tool of 5000 / of 7, the same seven", same, 1.1, 1.1),
        figure("a name in a profile", over("profile/has/observe", "profile/touch") / 8.0, 30.0, 30.0),
        figure("receipt from text", of("receipt/text"), 5500.0, 8600.0),
        figure("receipt from text / via Value", ratio("receipt/text", "receipt/via_value"), 0.35, 0.4),
        figure("receipt, structured / its clone", ratio("receipt/structured", "receipt/structured_clone"), 0.1, 1.55),
        figure("receipt of 64 KiB / of 16 KiB", ratio("receipt/large/65536", "receipt/large/16384"), 4.0, 4.1),
        figure("denial from text / via Value", ratio("denial/text", "denial/via_value"), 0.45, 0.9),
        figure("text without braces / memchr", of("denial/prose") / memchr(page), 1.5, 1.5),
        figure("denial behind 64 KiB / memchr", prefixed(page) / memchr(page), 1.5, 3.2),
        figure("denial behind 1 MiB / memchr", prefixed(full) / memchr(full), 1.5, 1.5),
        figure("the same / memchr and a denial", prefixed(page) / (memchr(page) + of("denial/text")), 1.5, 1.5),
        figure("hostile text, instructions per byte", largest(&per_byte), 24.0, 120.0),
        figure("hostile text, 4 times the input", largest(&growths), 5.0, 5.0),
    ]
}

pub(crate) fn report(cases: &Cases, counts: &BTreeMap<String, u64>, is_full: bool) -> ExitCode {
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
