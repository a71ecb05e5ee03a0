//! The official conformance suite: the same server directly, and through the gateway under `full`.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{process::Command, time::timeout};

use super::node;
use crate::{
    gateway::process::{Gateway, command},
    real_servers::{Process, programs, script},
};

/// What the suite may take: some of its scenarios wait for time to pass.
const LIMIT: Duration = Duration::from_secs(300);

/// How each check of each scenario ended.
type Checks = BTreeMap<(String, String), String>;

/// Runs what `revision` of the protocol requires against the server at `url`.
async fn run(folder: &Path, url: &str, revision: &str, label: &str) -> Checks {
    let results = folder.join(format!("results-{label}-{revision}"));
    let _ = fs::remove_dir_all(&results);
    let mut suite = Command::new(folder.join("node"));
    suite
        .arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", url, "--requirements", revision, "-o"])
        .arg(&results)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    // It fails wherever the server under test lacks something, so its status says nothing.
    let output = timeout(LIMIT, suite.output()).await.expect("the suite ends").unwrap();
    let checks = read(&results);
    assert!(checks.len() > 50, "{label}: the suite ran: {}", String::from_utf8_lossy(&output.stderr));
    checks
}

/// The folders are called `server-SCENARIO-2026-11-30T12-00-00-000Z`.
fn read(results: &PathBuf) -> Checks {
    let mut checks = Checks::new();
    for folder in fs::read_dir(results).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let scenario = name.strip_prefix("server-").unwrap_or(name);
        let scenario = &scenario[..scenario.len().saturating_sub("-2026-11-30T12-00-00-000Z".len())];
        let Ok(text) = fs::read_to_string(folder.join("checks.json")) else { continue };
        for check in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
            let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
            // One check may be made several times; the worst counts.
            let outcome = checks.entry((scenario.to_owned(), text("id"))).or_insert_with(|| text("status"));
            if text("status") != "SUCCESS" {
                *outcome = text("status");
            }
        }
    }
    checks
}

fn passed(checks: &Checks) -> usize {
    checks.values().filter(|status| *status == "SUCCESS").count()
}

#[tokio::test]
async fn the_gateway_loses_no_check() {
    let test = "the conformance suite";
    let (Some(folder), Some(python)) = (node(test), programs("sdk2", test)) else { return };
    let server = Process::start(|port| {
        let mut server = Command::new(python.join("python"));
        server.arg(script("conformance_server.py")).arg(port.to_string());
        server
    })
    .await;
    let mut table = String::from("\nconformance checks passed: direct, through the gateway\n");
    for (revision, mode) in [("2025-11-25", &["--sessions"][..]), ("2026-07-28", &[])] {
        let gateway = Gateway::start(command(
            &[
                &["--upstream", &server.url, "--listen", "127.0.0.1:0", "--profile", "full", "--single-identity"][..],
                // The suite comes as a page of the server's own origin, and asks for more than tools.
                &["--allow-origin", "http://127.0.0.1:*", "--pass-through", "prompts,resources,completion"],
                mode,
            ]
            .concat(),
        ))
        .await;
        let direct = run(&folder, &server.url, revision, "direct").await;
        let through = run(&folder, &gateway.url, revision, "through").await;
        let lost: Vec<_> = direct
            .iter()
            .filter(|(check, status)| *status == "SUCCESS" && through.get(check).is_none_or(|it| it != "SUCCESS"))
            .collect();
        assert!(lost.is_empty(), "{revision}: {lost:#?}");
        let counts = [passed(&direct), direct.len(), passed(&through), through.len()];
        writeln!(table, "  {revision}: {} of {}, {} of {}", counts[0], counts[1], counts[2], counts[3]).unwrap();
    }
    println!("{table}");
}
