//! `WebhookFilter` against the tricks by which a URL says one host and leads to another.

use rmcp::object;
use tower::{ServiceBuilder, ServiceExt as _};
use tower_algenta::{BoxError, Error, ToolNames, ToolRequest, WebhookFilterLayer, error::InvalidReason};

use crate::support::{Received, empty_result, recording};

use InvalidReason::{
    WebhookAddressInternal as Internal, WebhookHostNotAllowed as NotAllowed, WebhookNotHttps as NotHttps,
    WebhookUrlMalformed as Malformed,
};

/// On the list are also the addresses that must be refused all the same.
fn layer() -> WebhookFilterLayer {
    WebhookFilterLayer::new([
        "hooks.example",
        "*.corp.example",
        "bücher.example",
        "93.184.216.34",
        "localhost",
        "*.localhost",
        "127.0.0.1",
        "10.0.0.7",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fd00::1]",
        "[fe80::1]",
        "[::]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[2606:4700::1111]",
        "172.16.0.1",
        "192.168.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[ff02::1]",
        "[::7f00:1]",
        "192.0.0.1",
    ])
    .unwrap()
}

/// What the layer says of `url`, and that it called the engine exactly if it admitted it.
async fn verdict(layer: WebhookFilterLayer, url: &str) -> Result<(), InvalidReason> {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let arguments = object!({"decision_id": "d", "webhook_url": url});
    let service = ServiceBuilder::new().layer(layer).service(engine);
    let answer = service.oneshot(ToolRequest::call("execute_decision", arguments)).await;
    assert_eq!(received.len(), usize::from(answer.is_ok()), "{url}");
    answer.map(drop).map_err(|error: BoxError| match Error::from(error) {
        Error::InvalidArguments(refusal) => refusal.reason(),
        other => panic!("{url}: {other:?}"),
    })
}

#[tokio::test]
async fn every_trick_gets_the_right_answer() {
    let cases: &[(&str, Result<(), InvalidReason>)] = &[
        // What is meant to pass.
        ("https://hooks.example/x", Ok(())),
        ("https://hooks.example", Ok(())),
        ("HTTPS://Hooks.Example/X?y=%2e#z", Ok(())),
        ("https://hooks.example:443/x", Ok(())),
        ("https://hooks.example:8443/x", Ok(())),
        ("https://hooks.example./x", Ok(())),
        ("https://a.corp.example/x", Ok(())),
        ("https://a.b.corp.example/x", Ok(())),
        ("https://xn--bcher-kva.example/x", Ok(())),
        ("https://93.184.216.34/x", Ok(())),
        ("https://[2606:4700::1111]/x", Ok(())),
        ("https://hooks.example/redirect?to=http://127.0.0.1/@evil.example", Ok(())),
        // Names that only look like those on the list.
        ("https://evil.example/x", Err(NotAllowed)),
        ("https://hooks.example.evil.example/x", Err(NotAllowed)),
        ("https://evilhooks.example/x", Err(NotAllowed)),
        ("https://corp.example/x", Err(NotAllowed)),
        ("https://evilcorp.example/x", Err(NotAllowed)),
        ("https://.corp.example/x", Err(NotAllowed)),
        ("https://xn--bcher-kva.example.evil/x", Err(NotAllowed)),
        ("https://93.184.216.35/x", Err(NotAllowed)),
        ("https://evil.example/hooks.example", Err(NotAllowed)),
        ("https://evil.example?hooks.example", Err(NotAllowed)),
        ("https://evil.example#@hooks.example", Err(NotAllowed)),
        // User-info, and what parsers take for it.
        ("https://hooks.example@evil.example/x", Err(Malformed)),
        ("https://user:pass@hooks.example/x", Err(Malformed)),
        ("https://@hooks.example/x", Err(Malformed)),
        ("https://evil.example\\@hooks.example/x", Err(Malformed)),
        ("https://hooks.example\\.evil.example/x", Err(Malformed)),
        ("https:\\\\hooks.example/x", Err(Malformed)),
        // White space, controls and percent signs.
        (" https://hooks.example/x", Err(Malformed)),
        ("https://hooks.example/x\n", Err(Malformed)),
        ("https://hooks\t.example/x", Err(Malformed)),
        ("ht\ntps://hooks.example/x", Err(Malformed)),
        ("https://hooks.example%2eevil.example/x", Err(Malformed)),
        ("https://%68ooks.example/x", Err(Malformed)),
        ("https://hooks.example\0.evil.example/x", Err(Malformed)),
        // Names outside ASCII: parsers map them differently.
        ("https://bücher.example/x", Err(Malformed)),
        ("https://ｈooks.example/x", Err(Malformed)),
        ("https://hooks。example/x", Err(Malformed)),
        ("https://ⓗooks.example/x", Err(Malformed)),
        // Odd forms.
        ("https:hooks.example/x", Err(Malformed)),
        ("https:/hooks.example/x", Err(Malformed)),
        ("https:///hooks.example/x", Err(Malformed)),
        ("https://hooks.example:/x", Err(Malformed)),
        ("https://hooks.example:99999/x", Err(Malformed)),
        ("https://hooks.example:0443/x", Err(Malformed)),
        ("//hooks.example/x", Err(Malformed)),
        ("hooks.example/x", Err(Malformed)),
        ("", Err(Malformed)),
        ("https://", Err(Malformed)),
        // Other schemes.
        ("http://hooks.example/x", Err(NotHttps)),
        ("ftp://hooks.example/x", Err(NotHttps)),
        ("file://hooks.example/etc/passwd", Err(NotHttps)),
        ("gopher://hooks.example/x", Err(NotHttps)),
        ("javascript://hooks.example/%0aalert(1)", Err(NotHttps)),
        ("data:text/plain,x", Err(Malformed)),
        // Addresses in other spellings.
        ("https://2130706433/x", Err(Malformed)),
        ("https://0x7f000001/x", Err(Malformed)),
        ("https://0177.0.0.1/x", Err(Malformed)),
        ("https://127.1/x", Err(Malformed)),
        ("https://127.0.0.1./x", Err(Malformed)),
        ("https://93.184.55330/x", Err(Malformed)),
        ("https://[0:0:0:0:0:0:0:1]/x", Err(Malformed)),
        ("https://[::ffff:127.0.0.1]/x", Err(Malformed)),
        ("https://[fe80::1%25eth0]/x", Err(Malformed)),
        // Internal addresses, though they are on the list.
        ("https://localhost/x", Err(Internal)),
        ("https://LOCALHOST./x", Err(Internal)),
        ("https://a.localhost/x", Err(Internal)),
        ("https://127.0.0.1/x", Err(Internal)),
        ("https://10.0.0.7/x", Err(Internal)),
        ("https://172.16.0.1/x", Err(Internal)),
        ("https://192.168.0.1/x", Err(Internal)),
        ("https://169.254.169.254/latest/meta-data", Err(Internal)),
        ("https://0.0.0.0/x", Err(Internal)),
        ("https://100.64.0.1/x", Err(Internal)),
        ("https://192.0.0.1/x", Err(Internal)),
        ("https://198.18.0.1/x", Err(Internal)),
        ("https://224.0.0.1/x", Err(Internal)),
        ("https://255.255.255.255/x", Err(Internal)),
        ("https://[::1]/x", Err(Internal)),
        ("https://[::]/x", Err(Internal)),
        ("https://[::ffff:7f00:1]/x", Err(Internal)),
        ("https://[::7f00:1]/x", Err(Internal)),
        ("https://[fd00::1]/x", Err(Internal)),
        ("https://[fe80::1]/x", Err(Internal)),
        ("https://[ff02::1]/x", Err(Internal)),
        ("https://[64:ff9b::7f00:1]/x", Err(Internal)),
        ("https://[2002:7f00:1::]/x", Err(Internal)),
    ];
    assert_eq!(cases.len(), 88);
    for (url, expected) in cases {
        assert_eq!(verdict(layer(), url).await, *expected, "{url:?}");
    }
}

#[tokio::test]
async fn an_address_on_the_list_is_judged_by_its_block() {
    let alone = |host: &str| WebhookFilterLayer::new([host.to_owned()]).unwrap();
    for host in [
        "100.64.0.1",
        "100.127.255.254",
        "192.0.2.1",
        "198.19.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "[fec0::1]",
        "[2001:db8::1]",
        "[2001::1]",
        "[64:ff9b:1::1]",
        "[64:ff9b::a00:1]",
        "[2002:a00:1::1]",
    ] {
        assert_eq!(verdict(alone(host), &format!("https://{host}/x")).await, Err(Internal), "{host}");
    }
    // Each next to a special block, and in none.
    for host in [
        "100.63.0.1",
        "100.128.0.1",
        "93.100.0.1",
        "192.0.1.1",
        "198.17.0.1",
        "198.20.0.1",
        "93.18.0.1",
        "[2001:db9::1]",
        "[2001:4860::8888]",
        "[64:ff9b::5db8:d822]",
        "[2002:5db8:d822::1]",
    ] {
        assert_eq!(verdict(alone(host), &format!("https://{host}/x")).await, Ok(()), "{host}");
    }
}

#[tokio::test]
async fn a_dangerous_setting_opens_what_it_names() {
    let open = || layer().dangerous_allow_http().dangerous_allow_internal();
    assert_eq!(verdict(open(), "http://127.0.0.1:8080/x").await, Ok(()));
    assert_eq!(verdict(layer().dangerous_allow_http(), "http://127.0.0.1/x").await, Err(Internal));
    assert_eq!(verdict(open(), "http://10.0.0.8/x").await, Err(NotAllowed));
    assert_eq!(verdict(open(), "ftp://hooks.example/x").await, Err(NotHttps));
}

#[tokio::test]
async fn it_judges_executions_alone_and_wants_a_url() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let layer = layer().tool_names(ToolNames::prefixed("eu__"));
    let service = ServiceBuilder::new().layer(layer).service(engine);
    let call = |tool: &'static str, arguments| service.clone().oneshot(ToolRequest::call(tool, arguments));
    assert!(call("eu__simulate", object!({"webhook_url": "http://evil.example"})).await.is_ok());
    assert!(service.clone().oneshot(ToolRequest::list()).await.is_ok());
    for arguments in [object!({}), object!({"webhook_url": 5}), object!({"webhook_url": "https://evil.example"})] {
        assert!(call("eu__execute_decision", arguments).await.is_err());
    }
    assert_eq!(received.len(), 2);
}

#[test]
fn a_list_entry_is_a_host() {
    for entry in ["", "*", "*.", "a*.example", "*.10.0.0.1", "https://hooks.example", "hooks.example/x", "a b", "[::1"]
    {
        let error = WebhookFilterLayer::new([entry]).unwrap_err();
        assert!(error.to_string().contains("is no host"), "{entry:?}");
    }
}
