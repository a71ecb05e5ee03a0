//! The manifest for Kubernetes, as far as it is the gateway's business.

use std::{fs, path::Path};

use crate::gateway::process::{command, refusal};

const MANIFEST: &str = include_str!("../../../examples/deploy/kubernetes.yaml");

/// The value after `key` on the one line that has it.
#[track_caller]
fn seconds(key: &str) -> u64 {
    let mut values = MANIFEST.lines().filter_map(|line| line.trim().strip_prefix(key));
    let value = values.next().unwrap_or_else(|| panic!("{key} is there"));
    assert_eq!(values.next(), None, "{key}");
    value.trim().parse().unwrap()
}

#[test]
fn nothing_is_cut_short() {
    let (call, drain) = (seconds("- --call-timeout="), seconds("- --drain="));
    assert!(drain > call);
    assert!(seconds("terminationGracePeriodSeconds:") > seconds("- --drain-delay=") + drain);
}

/// What the comments promise. That the whole is well formed is for Kubernetes to say.
#[test]
fn a_replica_can_go_and_cannot_be_written_to() {
    let lines: Vec<_> = MANIFEST.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect();
    for line in [
        "replicas: 2",
        "rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }",
        "minAvailable: 1",
        "sessionAffinity: None",
        "httpGet: { path: /readyz, port: http }",
        "httpGet: { path: /healthz, port: http }",
        "automountServiceAccountToken: false",
        "runAsNonRoot: true",
        "readOnlyRootFilesystem: true",
        "allowPrivilegeEscalation: false",
        "capabilities: { drop: [ALL] }",
    ] {
        assert_eq!(lines.iter().filter(|other| **other == line).count(), 1, "{line}");
    }
    // Probes that give up before /readyz does would call a slow engine a dead replica.
    assert!(lines.contains(&"timeoutSeconds: 6"), "the probe of readiness waits longer than the gateway's 5 s");
}

#[tokio::test]
async fn the_gateway_takes_its_arguments() {
    let callers = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("manifest-{}.json", std::process::id()));
    let one = serde_json::json!({"name": "a", "token_sha256": "0".repeat(64), "profile": "execute"});
    fs::write(&callers, serde_json::json!({"callers": [one]}).to_string()).unwrap();
    let args: Vec<_> = (MANIFEST.lines())
        .filter_map(|line| line.trim().strip_prefix("- ").filter(|arg| arg.starts_with("--")))
        .map(|arg| arg.replace("/etc/gateway/callers.json", callers.to_str().unwrap()))
        .collect();
    let args: Vec<_> = args.iter().map(String::as_str).chain(["--check"]).collect();
    let checked = command(&args).output().await.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    // What it says of the callers' file is true.
    let anyone: Vec<_> = args.into_iter().filter(|arg| !arg.starts_with("--callers")).collect();
    assert!(refusal(&anyone).await.contains("--callers"));
    fs::remove_file(callers).unwrap();
}
