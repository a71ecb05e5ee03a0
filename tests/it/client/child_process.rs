//! Engines that are child processes: shell scripts that speak just enough of the protocol.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::object;
use tokio::time::timeout;
use tower::{Service as _, ServiceBuilder, ServiceExt, service_fn};
use tower_algenta::{
    EngineClient, Error, GovernanceLayer, Profile, ToolRequest, ToolResponse,
    client::{CallError, CallErrorKind, ChildProcess, ConnectError, ConnectErrorKind, Reconnect},
    error::UnknownReason,
};

use super::{SOON, TOKEN, call, eventually, list, no_arguments, not_sent, simulate, upstream};
use crate::support::everything_printed;

/// Answers the handshake, and a list with one tool; `CALL` stands for what it does when it is called.
const ENGINE: &str = r#"
echo "started in $PWD" >&2
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
    *server/discover*) result='"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"' ;;
    *tools/list*) result='"tools":[{"name":"simulate","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"' ;;
    *tools/call*) text="$$ $PWD $ENGINE_NAME"; CALL; result="\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]" ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$result"
done
AFTER
"#;

/// The script with what it does on a call, and when its input has ended.
fn script(call: &str, after: &str) -> ChildProcess {
    let script = ENGINE.replace("CALL", call).replace("AFTER", after);
    ChildProcess::new("sh").arg("-c").arg(script).env("ENGINE_NAME", "eng").on_stderr(|_| {})
}

async fn spawn(child: ChildProcess) -> EngineClient {
    timeout(SOON, EngineClient::spawn(child)).await.expect("connecting ends").unwrap()
}

async fn spawn_error(child: ChildProcess) -> (ConnectErrorKind, String) {
    let error = timeout(SOON, EngineClient::spawn(child)).await.expect("connecting ends").unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let Error::NotSent(inner) = &error else { panic!("{error:?}") };
    (inner.downcast_ref::<ConnectError>().unwrap().kind(), error.to_string())
}

/// The child's process id.
async fn pid(client: &EngineClient) -> String {
    let result = call(client, simulate()).await.unwrap();
    let text = &result.content[0].as_text().unwrap().text;
    text.split(' ').next().unwrap().to_owned()
}

fn is_alive(pid: &str) -> bool {
    // A zombie has ended; that nobody fetched its status is no life.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_child() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let folder = fs::canonicalize(std::env::temp_dir()).unwrap();
    let child = script("echo called >&2", "")
        .current_dir(&folder)
        .env("API_KEY", TOKEN)
        .on_stderr(move |line| kept.lock().unwrap().push(line.to_owned()));
    assert!(!format!("{child:?}").contains(TOKEN));

    let client = spawn(child).await;
    assert_eq!(list(&client).await.unwrap(), ["simulate"]);
    let result = call(&client, simulate()).await.unwrap();
    let text = &result.content[0].as_text().unwrap().text;
    assert!(text.ends_with(&format!(" {} eng", folder.display())), "{text}");
    eventually("its standard error arrives", || lines.lock().unwrap().len() == 2).await;
    assert_eq!(*lines.lock().unwrap(), [format!("started in {}", folder.display()), "called".to_owned()]);

    let pid = pid(&client).await;
    assert!(is_alive(&pid));
    client.close().await.unwrap();
    assert!(!is_alive(&pid), "closing waits for its end");
    let error = call(&client, simulate()).await.unwrap_err();
    assert_eq!(not_sent(&error), CallErrorKind::Closed);
    assert!(error.to_string().contains("has ended (exit status: 0): start it again"), "{error}");
}

#[tokio::test]
async fn a_child_that_does_not_start() {
    let (kind, text) = spawn_error(ChildProcess::new("/nowhere/engine").env("API_KEY", TOKEN)).await;
    assert_eq!(kind, ConnectErrorKind::NotStarted);
    assert!(text.contains("could not be started (No such file or directory") && !text.contains(TOKEN), "{text}");

    let (kind, _) = spawn_error(ChildProcess::new("sh").current_dir("/nowhere")).await;
    assert_eq!(kind, ConnectErrorKind::NotStarted);
}

#[tokio::test]
async fn a_child_that_ends_during_the_handshake() {
    for script in ["echo 'no licence' >&2; exit 3", "read -r line; echo 'no licence' >&2; exit 3"] {
        let said = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&said);
        let child =
            ChildProcess::new("sh").args(["-c", script]).on_stderr(move |line| kept.lock().unwrap().push_str(line));
        let (kind, text) = spawn_error(child).await;
        assert!(matches!(kind, ConnectErrorKind::Exited(status) if status.code() == Some(3)), "{kind:?}");
        assert!(text.contains("the engine ended during the handshake (exit status: 3)"), "{text}");
        assert!(!text.contains("licence"), "what it wrote is the owner's to show: {text}");
        eventually("its last words arrive", || *said.lock().unwrap() == "no licence").await;
    }
}

#[tokio::test]
async fn a_child_that_says_nothing_or_nonsense() {
    let limit = Duration::from_millis(300);
    for script in ["exec sleep 60", "echo hello; exec sleep 60"] {
        let child = ChildProcess::new("sh").args(["-c", script]).connect_timeout(limit);
        assert_eq!(spawn_error(child).await.0, ConnectErrorKind::TimedOut(limit));
    }
}

#[tokio::test]
async fn a_child_that_dies_during_a_call() {
    let client = spawn(script("kill -9 $$", "")).await;
    let error = call(&client, simulate()).await.unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::Lost);
    assert!(error.to_string().contains("the engine's process ended (signal: 9"), "{error}");
    let error = call(&client, simulate()).await.unwrap_err();
    assert_eq!(not_sent(&error), CallErrorKind::Closed);
    assert!(error.to_string().contains("has ended (signal: 9"), "{error}");

    let client = spawn(script("exit 7", "")).await;
    let governed = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(client.clone());
    let execute = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "https://h"}));
    let error = timeout(SOON, governed.clone().oneshot(execute.clone())).await.unwrap().unwrap_err();
    let Error::OutcomeUnknown(unknown) = &error else { panic!("{error:?}") };
    assert_eq!(unknown.reason(), UnknownReason::InnerError);
    let Some(Error::Upstream(inner)) = Error::find(unknown.error().unwrap()) else { panic!("{error:?}") };
    let status = inner.downcast_ref::<CallError>().unwrap().exit_status().unwrap();
    assert_eq!(status.code(), Some(7));
    assert!(!everything_printed(&error).contains("exit status"));
    // From now on it is certain that nothing is sent.
    assert!(governed.oneshot(execute).await.unwrap_err().is_retryable());
}

#[tokio::test]
async fn a_child_ends_with_its_last_client() {
    let client = spawn(script("true", "")).await;
    let pid = pid(&client).await;
    let clone = client.clone();
    drop(client);
    call(&clone, simulate()).await.unwrap();
    drop(clone);
    eventually("it ends", || !is_alive(&pid)).await;
}

#[tokio::test]
async fn a_child_that_does_not_mind_the_end_of_its_input_is_killed() {
    let client = spawn(script("true", "trap '' TERM HUP INT; while :; do sleep 0.1; done")).await;
    let pid = pid(&client).await;
    timeout(SOON, client.close()).await.unwrap().unwrap();
    assert!(!is_alive(&pid));
}

#[test]
fn a_child_ends_with_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, pid) = runtime.block_on(async {
        let client = spawn(script("true", "exec sleep 60")).await;
        let pid = pid(&client).await;
        (client, pid)
    });
    assert!(is_alive(&pid));
    drop(runtime);
    let begun = std::time::Instant::now();
    while is_alive(&pid) && begun.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!is_alive(&pid));
    drop(client);
}

#[tokio::test]
async fn a_call_of_a_child_that_is_given_up_is_cancelled() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    // It never answers a call, and tells which notifications come after it.
    let child = script("while read -r line; do echo \"$line\" >&2; done", "")
        .on_stderr(move |line| kept.lock().unwrap().push(line.to_owned()))
        .call_timeout(Duration::from_millis(100));
    let client = spawn(child).await;
    let request = ToolRequest::call("simulate", no_arguments());
    let error = timeout(SOON, client.clone().oneshot(request)).await.unwrap().unwrap_err();
    assert!(matches!(upstream(&error), CallErrorKind::TimedOut(_)));
    eventually("the child hears of it", || {
        lines.lock().unwrap().iter().any(|line: &String| line.contains("notifications/cancelled"))
    })
    .await;
}

#[tokio::test]
async fn a_child_of_older_versions_is_started_again() {
    const OLDER: &str = r#"
        echo started >&2
        while read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case $line in
            *server/discover*) answer='"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}' ;;
            *'"initialize"'*) answer='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}' ;;
            *tools/call*) answer='"result":{"content":[]}' ;;
            *) continue ;;
            esac
            printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
        done
        echo ended >&2
    "#;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let child = ChildProcess::new("sh").args(["-c", OLDER]);
    let client = spawn(child.on_stderr(move |line| kept.lock().unwrap().push(line.to_owned()))).await;
    assert_eq!(client.protocol_version().unwrap().as_str(), "2025-06-18");
    call(&client, simulate()).await.unwrap();
    client.close().await.unwrap();
    eventually("both end", || *lines.lock().unwrap() == ["started", "ended", "started", "ended"]).await;
}

#[tokio::test]
async fn an_engine_that_has_ended_is_started_again() {
    let mut engine = Reconnect::new(service_fn(|()| EngineClient::spawn(script(":", ""))), ());
    let mut pid = async || {
        let ready = timeout(SOON, engine.ready()).await.expect("it becomes ready")?;
        match timeout(SOON, ready.call(simulate())).await.expect("a call ends")? {
            ToolResponse::Call(outcome) => {
                let text = &outcome.result().unwrap().content[0].as_text().unwrap().text;
                Ok::<_, Error>(text.split(' ').next().unwrap().to_owned())
            }
            ToolResponse::List(_) => panic!("a list"),
        }
    };
    let first = pid().await.unwrap();
    assert_eq!(pid().await.unwrap(), first, "one process as long as it lives");
    assert!(std::process::Command::new("kill").args(["-9", &first]).status().unwrap().success());
    // The end may be seen before a call, or by one.
    let second = match pid().await {
        Ok(second) => second,
        Err(_) => pid().await.unwrap(),
    };
    assert_ne!(second, first);
    assert!(!is_alive(&first) && is_alive(&second));
}
