//! The stub, driven by rmcp's own client over a real socket.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use rmcp::{
    RoleClient, ServiceError,
    model::{CallToolRequestParams, CallToolResult, ErrorCode, PaginatedRequestParams, ProtocolVersion},
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tower_algenta::{
    NEVER_MODEL_FACING,
    stub::{Fault, StubEngine, Wire},
};

type Client = RunningService<RoleClient, ()>;

const WEBHOOK: &str = "http://127.0.0.1:18800/hook";
const FORCE: &str = NEVER_MODEL_FACING[0];
const OVERRIDE_SAFETY: &str = NEVER_MODEL_FACING[1];
const SOON: Duration = Duration::from_secs(5);

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None }
}

fn config(engine: &StubEngine) -> StreamableHttpClientTransportConfig {
    StreamableHttpClientTransportConfig::with_uri(engine.url())
}

async fn try_connect(
    config: StreamableHttpClientTransportConfig,
    lifecycle: ClientLifecycleMode,
) -> Result<Client, ClientInitializeError> {
    let transport = StreamableHttpClientTransport::from_config(config);
    timeout(SOON, ().serve_with_lifecycle(transport, lifecycle)).await.expect("no answer to the handshake")
}

async fn connect(engine: &StubEngine) -> Client {
    try_connect(config(engine), auto()).await.unwrap()
}

async fn start(wire: Wire) -> (StubEngine, Client) {
    let engine = StubEngine::builder().wire(wire).start().await.unwrap();
    let client = connect(&engine).await;
    (engine, client)
}

async fn try_call(client: &Client, name: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
    timeout(SOON, client.call_tool(params)).await.expect("no answer to the call")
}

async fn call(client: &Client, name: &str, arguments: Value) -> CallToolResult {
    try_call(client, name, arguments).await.unwrap()
}

/// Executes a decision with these extra arguments set to true.
async fn execute(client: &Client, decision_id: &str, switches: &[&str]) -> CallToolResult {
    let mut arguments = json!({"decision_id": decision_id, "webhook_url": WEBHOOK});
    for &switch in switches {
        arguments[switch] = true.into();
    }
    call(client, "execute_decision", arguments).await
}

#[track_caller]
fn text(result: &CallToolResult) -> &str {
    let [block] = &*result.content else { panic!("not one block: {result:?}") };
    &block.as_text().expect("a text block").text
}

#[track_caller]
fn body(result: &CallToolResult) -> Value {
    serde_json::from_str(text(result)).unwrap()
}

/// The gate that a result in the real server's shape names; `None` for a receipt.
#[track_caller]
fn gate(result: &CallToolResult) -> Option<String> {
    let body = body(result);
    let Some(message) = body["error"]["message"].as_str() else {
        assert_eq!(result.is_error, Some(false));
        return None;
    };
    assert_eq!((result.is_error, &body["error"]["status_code"]), (Some(true), &json!(409)));
    let inner: Value = serde_json::from_str(message.strip_prefix("API error 409: ").unwrap()).unwrap();
    Some(inner["error"]["gate"].as_str().unwrap().to_owned())
}

#[track_caller]
fn recorded_text(name: &str) -> String {
    let recorded: Value = serde_json::from_str(include_str!("../data/execute_results.json")).unwrap();
    let mut cases = recorded["cases"].as_array().unwrap().iter();
    let case = cases.find(|case| case["name"] == name).expect("a recorded case of this name");
    case["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Sends one HTTP request by hand and returns the whole answer.
async fn http(addr: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request =
        format!("{head}\r\nhost: {addr}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.expect("no HTTP answer").unwrap();
    answer
}

#[tokio::test]
async fn both_generations_list_and_call() {
    let legacy = ClientLifecycleMode::Initialize;
    for (lifecycle, version) in [(auto(), ProtocolVersion::V_2026_07_28), (legacy, ProtocolVersion::V_2025_11_25)] {
        let engine = StubEngine::start().await.unwrap();
        let client = try_connect(config(&engine), lifecycle).await.unwrap();
        assert_eq!(client.peer_info().unwrap().protocol_version, version);

        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        let contract = ["get_contract", "query_data", "simulate", "recommend", "plan_decision", "log_decision"];
        assert_eq!(names[..6], contract);
        assert_eq!(names[6..], ["execute_decision", "query_batch", "update_execution_policy"]);
        assert_eq!(engine.lists(), 1);

        let result = call(&client, "simulate", json!({"scenario": "expand-to-eu"})).await;
        assert_eq!(body(&result), json!({"scenario": "expand-to-eu", "expected_value": 42.0}));
        assert_eq!((result.structured_content, result.is_error), (None, Some(false)));
        assert_eq!(execute(&client, "decision-x", &[]).await.is_error, Some(false));
        assert_eq!(gate(&execute(&client, "decision-x", &[]).await).as_deref(), Some("idempotency"));
        assert_eq!(engine.executed("decision-x"), 1);
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn execute_decision_advertises_the_operator_switches() {
    let (_engine, client) = start(Wire::default()).await;
    let tools = client.list_all_tools().await.unwrap();
    let tool = tools.iter().find(|tool| tool.name == "execute_decision").unwrap();
    let properties = tool.input_schema["properties"].as_object().unwrap();
    assert_eq!(properties.len(), 6);
    for name in NEVER_MODEL_FACING {
        assert_eq!(properties[name]["type"], "boolean");
        assert!(tool.description.as_ref().unwrap().contains(name));
    }
}

#[tokio::test]
async fn each_tool_has_its_answer() {
    let (_engine, client) = start(Wire::default()).await;
    let rows = json!([{"value": 1}, {"value": 2}]);
    for (tool, arguments, answer) in [
        (
            "get_contract",
            json!({}),
            json!({"capabilities": ["query", "simulate", "recommend"], "engine_version": "1.4.0"}),
        ),
        ("query_data", json!({"dataset": "sales"}), json!({"dataset": "sales", "rows": rows})),
        ("simulate", json!({"scenario": {"force": 9.8}}), json!({"scenario": {"force": 9.8}, "expected_value": 42.0})),
        (
            "recommend",
            json!({"scenario": "s"}),
            json!({"scenario": "s", "recommended_action": "hold", "confidence": 0.87}),
        ),
        ("plan_decision", json!({"scenario": "s"}), json!({"scenario": "s", "rationale": "looks fine"})),
        (
            "log_decision",
            json!({"chosen_action": "hold"}),
            json!({"decision_id": "decision-hold", "chosen_action": "hold", "expected_value": 0.0, "confidence": 0.9, "note": "logged"}),
        ),
        (
            "query_batch",
            json!({"queries": [{"key": "a", "request": {}}]}),
            json!({"results": [{"key": "a", "rows": rows}]}),
        ),
        (
            "update_execution_policy",
            json!({"min_confidence": 0.3}),
            json!({"min_confidence": 0.3, "risk_floor": 0.25, "allow_reexecution": false, "policy_snapshot_id": "ps_1"}),
        ),
    ] {
        assert_eq!(body(&call(&client, tool, arguments).await), answer, "{tool}");
    }
    // The policy is in force: 0.41 is enough now.
    assert_eq!(gate(&execute(&client, "decision-low-confidence", &[]).await), None);
}

#[tokio::test]
async fn each_switch_lifts_its_own_gates() {
    let (engine, client) = start(Wire::default()).await;
    let gate_of = async |id: &str, switches: &[&str]| gate(&execute(&client, id, switches).await);

    assert_eq!(gate_of("d", &[]).await, None);
    assert_eq!(gate_of("d", &[OVERRIDE_SAFETY]).await.as_deref(), Some("idempotency"));
    assert_eq!(gate_of("d", &[FORCE]).await, None);
    assert_eq!(gate_of("d", &[]).await.as_deref(), Some("idempotency"));
    assert_eq!(engine.executed("d"), 2);

    for (id, blocked_by) in [("decision-low-confidence", "confidence"), ("decision-low-risk-floor", "risk_floor")] {
        assert_eq!(gate_of(id, &[]).await.as_deref(), Some(blocked_by));
        assert_eq!(gate_of(id, &[FORCE]).await.as_deref(), Some(blocked_by));
        let receipt = execute(&client, id, &[OVERRIDE_SAFETY]).await;
        assert_eq!(body(&receipt)["safety_overridden"], true);
        assert_eq!(gate_of(id, &[]).await.as_deref(), Some("idempotency"));
        assert_eq!(gate_of(id, &[FORCE]).await.as_deref(), Some(blocked_by));
        assert_eq!(engine.executed(id), 1);
    }

    let id = "decision-two-gates";
    assert_eq!(gate_of(id, &[]).await.as_deref(), Some("idempotency"));
    assert_eq!(gate_of(id, &[FORCE]).await.as_deref(), Some("confidence"));
    assert_eq!(gate_of(id, &[FORCE, OVERRIDE_SAFETY]).await, None);
    let execution = engine.executions().pop().unwrap();
    assert_eq!((&*execution.decision_id, &*execution.webhook_url), (id, WEBHOOK));
    assert!(execution.forced && execution.safety_overridden);
}

#[tokio::test]
async fn a_decision_logged_with_little_confidence_is_held() {
    let (engine, client) = start(Wire::default()).await;
    call(&client, "log_decision", json!({"chosen_action": "leap", "confidence": 0.5})).await;
    assert_eq!(gate(&execute(&client, "decision-leap", &[]).await).as_deref(), Some("confidence"));
    assert_eq!(engine.executions(), []);
}

#[tokio::test]
async fn odd_receipts() {
    let (engine, client) = start(Wire::default()).await;
    for _ in 0..2 {
        let receipt = body(&execute(&client, "decision-failed-delivery", &[]).await);
        assert_eq!((&receipt["execution_status"], &receipt["response_code"]), (&json!("failed"), &json!(500)));
    }
    let receipt = body(&execute(&client, "decision-malformed-receipt", &[]).await);
    assert_eq!((receipt.get("execution_status"), &receipt["webhook_url"]), (None, &json!(WEBHOOK)));
    assert_eq!(engine.executed("decision-failed-delivery"), 2);
    assert_eq!(engine.executed("decision-malformed-receipt"), 1);
}

#[tokio::test]
async fn the_real_server_was_recorded_saying_the_same() {
    for (wire, folder, id, flag) in
        [(Wire::Algenta, "flat", "dec_1", true), (Wire::Algenta1_0_27, "v1_0_17", "dec_7", false)]
    {
        let (_engine, client) = start(wire).await;
        let receipt = execute(&client, id, &[]).await;
        assert_eq!(text(&receipt), recorded_text(&format!("{folder}/32_execute_force_ok")));
        for (id, case) in [
            (id, "31_execute_409_idempotency"),
            ("decision-low-confidence", "34_execute_409_confidence"),
            ("decision-low-risk-floor", "38_execute_409_risk_floor"),
        ] {
            let denial = execute(&client, id, &[]).await;
            assert_eq!(text(&denial), recorded_text(&format!("{folder}/{case}")));
            assert_eq!(denial.is_error, Some(flag));
        }
    }
    let (_engine, client) = start(Wire::Algenta).await;
    let refused = call(&client, "execute_decision", json!({})).await;
    assert_eq!(text(&refused), recorded_text("flat_reqid/14_execute_missing_args"));
    let refused = call(&client, "execute_decision", json!({"decision_id": 5, "webhook_url": WEBHOOK})).await;
    assert_eq!(text(&refused), recorded_text("flat/15_execute_bad_type"));
    assert_eq!(refused.is_error, Some(true));
}

#[tokio::test]
async fn other_servers_wrap_the_same_body() {
    let id = "decision-low-confidence";
    let denial = json!({
        "code": "execution_blocked_confidence",
        "gate": "confidence",
        "message": "decision confidence 0.41 is below policy.min_confidence 0.6",
        "override_hint": format!("Pass {OVERRIDE_SAFETY}=true to bypass."),
    });
    let error = json!({"error": denial});

    for (wire, prefix) in [
        (Wire::PythonSdk, "Error executing tool execute_decision: "),
        (Wire::FastMcp, "Error calling tool 'execute_decision': "),
    ] {
        let (_engine, client) = start(wire).await;
        let result = execute(&client, id, &[]).await;
        assert_eq!(result.is_error, Some(true));
        let inner: Value = serde_json::from_str(text(&result).strip_prefix(prefix).unwrap()).unwrap();
        assert_eq!(inner, error, "{wire}");
    }

    let (_engine, client) = start(Wire::Returned).await;
    let result = execute(&client, id, &[]).await;
    assert_eq!((result.is_error, body(&result)), (Some(false), error.clone()));
    assert_eq!(result.structured_content, Some(error.clone()));

    for (wire, rest) in [
        (Wire::Detail, json!({"detail": denial, "request_id": "req_123"})),
        (Wire::DetailError, json!({"detail": error, "request_id": "req_123"})),
    ] {
        let (_engine, client) = start(wire).await;
        let envelope = body(&execute(&client, id, &[]).await);
        let message = envelope["error"]["message"].as_str().unwrap().strip_prefix("API error 409: ").unwrap();
        assert_eq!(serde_json::from_str::<Value>(message).unwrap(), rest, "{wire}");
    }

    let (engine, client) = start(Wire::JsonRpcError).await;
    let arguments = json!({"decision_id": id, "webhook_url": WEBHOOK});
    match try_call(&client, "execute_decision", arguments).await {
        Err(ServiceError::McpError(failure)) => assert_eq!(failure.data, Some(error)),
        other => panic!("{other:?}"),
    }
    assert_eq!(engine.executions(), []);
}

#[tokio::test]
async fn structured_content_where_the_server_has_it() {
    for wire in Wire::ALL {
        let (_engine, client) = start(wire).await;
        let receipt = execute(&client, "d", &[]).await;
        let structured = matches!(wire, Wire::FastMcp | Wire::Returned).then(|| body(&receipt));
        assert_eq!(receipt.structured_content, structured, "{wire}");
        assert_eq!(body(&receipt)["execution_status"], "delivered", "{wire}");
    }
}

#[test]
fn a_wire_shape_is_read_by_its_exact_name() {
    for wire in Wire::ALL {
        assert_eq!(wire.as_str().parse(), Ok(wire));
        assert_eq!(wire.to_string(), wire.as_str());
    }
    assert_eq!(
        "Algenta".parse::<Wire>().unwrap_err().to_string(),
        "unknown wire shape: expected one of algenta, algenta-1.0.27, python-sdk, fastmcp, returned, detail, \
         detail-error, json-rpc-error"
    );
}

#[tokio::test]
async fn lists_come_in_pages() {
    let engine = StubEngine::builder().page_size(4).start().await.unwrap();
    let client = connect(&engine).await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), 9);
    assert_eq!(engine.lists(), 3);
    for cursor in ["x", "0", "9", "-1"] {
        let params = PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned()));
        match client.list_tools(Some(params)).await {
            Err(ServiceError::McpError(error)) => assert_eq!(error.code, ErrorCode::INVALID_PARAMS),
            other => panic!("{cursor}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_prefix_goes_before_every_name() {
    let engine = StubEngine::builder().prefix("eu__").wire(Wire::PythonSdk).start().await.unwrap();
    let client = connect(&engine).await;
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().all(|tool| tool.name.starts_with("eu__")));

    let arguments = json!({"decision_id": "decision-low-confidence", "webhook_url": WEBHOOK});
    let denial = call(&client, "eu__execute_decision", arguments).await;
    assert!(text(&denial).starts_with("Error executing tool eu__execute_decision: {"));
    match try_call(&client, "get_contract", json!({})).await {
        Err(ServiceError::McpError(error)) => {
            assert_eq!((error.code, &*error.message), (ErrorCode::INVALID_PARAMS, "Unknown tool: get_contract"));
        }
        other => panic!("{other:?}"),
    }
    let names: Vec<_> = engine.received().into_iter().map(|call| call.name).collect();
    assert_eq!(names, ["eu__execute_decision", "get_contract"]);
}

#[tokio::test]
async fn without_the_token_nothing_gets_in() {
    let engine = StubEngine::builder().token("secret").start().await.unwrap();
    for config in [config(&engine), config(&engine).auth_header("wrong")] {
        for lifecycle in [auto(), ClientLifecycleMode::Initialize] {
            assert!(try_connect(config.clone(), lifecycle).await.is_err());
        }
    }
    let answer = http(engine.addr(), "POST /mcp HTTP/1.1", "{}").await;
    assert!(answer.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{answer}");
    assert!(answer.contains("www-authenticate: Bearer\r\n"), "{answer}");
    assert_eq!(engine.received_raw(), []);

    let client = try_connect(config(&engine).auth_header("secret"), auto()).await.unwrap();
    call(&client, "get_contract", json!({})).await;
    let raw = engine.received_raw().pop().unwrap();
    assert_eq!(raw.headers["authorization"], "Bearer secret");
    assert!(!format!("{raw:?} {engine:?} {:?}", StubEngine::builder().token("secret")).contains("secret"));
}

#[tokio::test]
async fn what_arrived_is_recorded_as_it_came() {
    let (engine, client) = start(Wire::default()).await;
    let arguments = json!({"decision_id": "d", "webhook_url": WEBHOOK, "Force": "yes", "metadata": {FORCE: 1e-7}});
    let Value::Object(arguments) = arguments else { unreachable!() };
    let mut params = CallToolRequestParams::new("execute_decision").with_arguments(arguments.clone());
    params.meta.get_or_insert_default().0.0.insert("x/mark".to_owned(), json!(1));
    client.call_tool(params).await.unwrap();
    client.call_tool(CallToolRequestParams::new("get_contract")).await.unwrap();

    let [executed, contract] = &*engine.received() else { panic!() };
    assert_eq!(executed.arguments, Some(arguments.clone()));
    assert_eq!(executed.meta["x/mark"], 1);
    assert_eq!(contract.arguments, None);
    let bodies: Vec<Value> =
        engine.received_raw().iter().map(|raw| serde_json::from_slice(&raw.body).unwrap()).collect();
    let calls: Vec<_> = bodies.iter().filter(|body| body["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0]["params"]["arguments"], Value::Object(arguments));
}

#[tokio::test]
async fn a_call_that_rmcp_cannot_read_is_in_the_raw_record_only() {
    let engine = StubEngine::start().await.unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "execute_decision",
        "arguments": {"decision_id": "d", "webhook_url": WEBHOOK, FORCE: true},
        "requestState": 5,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
    .to_string();
    let head = "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
                accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
                mcp-method: tools/call\r\nmcp-name: execute_decision";
    let answer = http(engine.addr(), head, &body).await;
    assert!(answer.contains("-32601"), "{answer}");
    assert_eq!((engine.received().len(), engine.executed("d")), (0, 0));
    assert_eq!(engine.received_raw()[0].body, body.as_bytes());

    let answer = http(engine.addr(), "POST /else HTTP/1.1", "{}").await;
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
}

#[tokio::test]
async fn an_answer_can_be_delayed_and_given_up() {
    let engine = StubEngine::builder().delay(Duration::from_millis(80)).start().await.unwrap();
    for lifecycle in [auto(), ClientLifecycleMode::Initialize] {
        let client = try_connect(config(&engine), lifecycle).await.unwrap();
        let begun = Instant::now();
        call(&client, "get_contract", json!({})).await;
        assert!(begun.elapsed() >= Duration::from_millis(80));

        let given_up = engine.cancelled();
        let params = CallToolRequestParams::new("get_contract");
        timeout(Duration::from_millis(30), client.call_tool_once(params)).await.unwrap_err();
        let cancelled = async {
            while engine.cancelled() == given_up {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(SOON, cancelled).await.expect("the engine never heard of it");
    }
}

#[tokio::test]
async fn faults_fail_calls_and_nothing_else() {
    for (fault, runs) in [
        (Fault::EmptyResult, 1),
        (Fault::ServerError, 1),
        (Fault::Hang, 1),
        (Fault::DropBefore, 0),
        (Fault::DropAfter, 1),
    ] {
        for lifecycle in [auto(), ClientLifecycleMode::Initialize] {
            let engine = StubEngine::builder().fault(fault).start().await.unwrap();
            let client = try_connect(config(&engine), lifecycle).await.unwrap();
            client.list_all_tools().await.unwrap();
            let arguments = json!({"decision_id": "d", "webhook_url": WEBHOOK});
            let params =
                CallToolRequestParams::new("execute_decision").with_arguments(arguments.as_object().unwrap().clone());
            let ended = timeout(Duration::from_millis(100), client.call_tool(params)).await;
            match (fault, ended) {
                (Fault::EmptyResult, Ok(Ok(result))) => assert!(result.content.is_empty()),
                (Fault::ServerError, Ok(Ok(result))) => {
                    assert_eq!(text(&result), recorded_text("flat_reqid/41_execute_boom"));
                    assert_eq!(result.is_error, Some(true));
                }
                (Fault::Hang, Err(_)) | (Fault::DropBefore | Fault::DropAfter, Ok(Err(_))) => {}
                (_, ended) => panic!("{fault:?}: {ended:?}"),
            }
            assert_eq!((engine.received().len(), engine.executed("d")), (1, runs), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn nothing_is_left_running() {
    for fault in [Fault::EmptyResult, Fault::Hang, Fault::DropAfter] {
        let engine = StubEngine::builder().fault(fault).start().await.unwrap();
        for lifecycle in [auto(), ClientLifecycleMode::Initialize] {
            let client = try_connect(config(&engine), lifecycle).await.unwrap();
            let params = CallToolRequestParams::new("get_contract");
            let _ = timeout(Duration::from_millis(30), client.call_tool_once(params)).await;
            drop(client);
        }
        engine.shutdown().await;
        let ended = async {
            while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(SOON, ended).await.unwrap_or_else(|_| panic!("{fault:?} left a task"));
    }
}

#[tokio::test]
async fn shutdown_frees_the_port_at_once() {
    let (engine, client) = start(Wire::default()).await;
    let addr = engine.addr();
    timeout(SOON, engine.shutdown()).await.expect("shutdown hangs");
    TcpListener::bind(addr).await.unwrap();
    assert!(try_call(&client, "get_contract", json!({})).await.is_err());
}

#[tokio::test]
async fn dropping_the_engine_frees_the_port() {
    let engine = StubEngine::start().await.unwrap();
    let addr = engine.addr();
    let _client = connect(&engine).await;
    drop(engine);
    let freed = async {
        while TcpListener::bind(addr).await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(SOON, freed).await.expect("the port is still taken");
    let engine = StubEngine::builder().port(addr.port()).start().await.unwrap();
    assert_eq!(engine.url(), format!("http://127.0.0.1:{}/mcp", addr.port()));
    assert!(StubEngine::builder().port(addr.port()).start().await.is_err());
}
