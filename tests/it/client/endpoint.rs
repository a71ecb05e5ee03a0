//! Where the engine is: argument, environment, default.

use std::{error::Error as StdError, ffi::OsString};

use tower_algenta::{
    BearerToken, Endpoint,
    client::{EndpointErrorKind, EndpointSource},
};

use super::TOKEN;

const BASE_URL: &str = "ALGENTA_BASE_URL";
const API_KEY: &str = "ALGENTA_API_KEY";
const SECRET: &str = "hunter2";

/// An environment with these variables.
fn environment<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
    |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
}

#[test]
fn the_first_that_is_set_counts() {
    let default = "http://localhost:8000/mcp";
    let variable = "http://variable.example/mcp";
    for (argument, environment_url, expected) in [
        (None, None, default),
        (Some(""), None, default),
        (Some(" \t\n"), Some(""), default),
        (None, Some("  "), default),
        (None, Some(variable), variable),
        (Some(""), Some(variable), variable),
        (Some("  "), Some(" http://variable.example/mcp "), variable),
        (Some("http://argument.example/mcp"), Some(variable), "http://argument.example/mcp"),
        (Some("https://argument.example/mcp"), Some("nonsense"), "https://argument.example/mcp"),
    ] {
        let variables: Vec<_> = environment_url.map(|url| (BASE_URL, url)).into_iter().collect();
        let endpoint = Endpoint::resolve_with(argument, environment(&variables)).unwrap();
        assert_eq!(endpoint.url(), expected, "{argument:?} {environment_url:?}");
        assert!(!endpoint.has_token());
    }
}

#[test]
fn the_url_is_taken_as_it_is() {
    for (url, expected) in [
        ("http://host:8000", "http://host:8000/"),
        ("http://host:8000/", "http://host:8000/"),
        ("http://host/a/b/", "http://host/a/b/"),
        ("https://host/mcp?tenant=7&x=%20", "https://host/mcp?tenant=7&x=%20"),
        ("https://host/mcp#part", "https://host/mcp#part"),
        ("HTTP://HOST:80/MCP", "http://host/MCP"),
        ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp"),
        ("http://bücher.example/mcp", "http://xn--bcher-kva.example/mcp"),
    ] {
        assert_eq!(Endpoint::new(url).unwrap().url(), expected);
    }
}

#[test]
fn a_bad_url_is_refused_and_its_source_named() {
    for (url, kind) in [
        ("nonsense", EndpointErrorKind::NotAUrl),
        ("http//host/mcp", EndpointErrorKind::NotAUrl),
        ("http://", EndpointErrorKind::NotAUrl),
        ("http://ho st/mcp", EndpointErrorKind::NotAUrl),
        ("http://host:99999/mcp", EndpointErrorKind::NotAUrl),
        ("/mcp", EndpointErrorKind::NotAUrl),
        ("localhost:8000/mcp", EndpointErrorKind::NotHttp),
        ("ftp://host/mcp", EndpointErrorKind::NotHttp),
        ("file:///etc/passwd", EndpointErrorKind::NotHttp),
        ("ws://host/mcp", EndpointErrorKind::NotHttp),
        ("http://user@host/mcp", EndpointErrorKind::UserInfo),
        ("https://user:hunter2@host/mcp", EndpointErrorKind::UserInfo),
        ("https://:hunter2@host/mcp", EndpointErrorKind::UserInfo),
        ("ftp://user:hunter2@host/mcp", EndpointErrorKind::NotHttp),
        ("http//user:hunter2@host", EndpointErrorKind::NotAUrl),
    ] {
        let argument = Endpoint::resolve_with(Some(url), environment(&[(BASE_URL, "http://unused/mcp")])).unwrap_err();
        assert_eq!((argument.kind(), argument.came_from()), (&kind, EndpointSource::Argument), "{url}");
        assert!(argument.to_string().starts_with("the engine's URL, given as an argument, "));
        assert_eq!(Endpoint::new(url).unwrap_err(), argument);

        let variable = Endpoint::resolve_with(None, environment(&[(BASE_URL, url)])).unwrap_err();
        assert_eq!((variable.kind(), variable.came_from()), (&kind, EndpointSource::Variable(BASE_URL)), "{url}");
        assert!(variable.to_string().starts_with("the environment variable `ALGENTA_BASE_URL` "));
        for printed in [argument.to_string(), format!("{argument:?}"), variable.to_string(), format!("{variable:?}")] {
            assert!(!printed.contains(SECRET) && !printed.contains("user:"), "{printed}");
        }
    }
    for empty in ["", " "] {
        assert_eq!(Endpoint::new(empty).unwrap_err().kind(), &EndpointErrorKind::NotAUrl);
    }
}

#[test]
fn each_error_says_what_to_do() {
    let text = |url| Endpoint::new(url).unwrap_err().to_string();
    let start = "the engine's URL, given as an argument,";
    assert_eq!(text("nonsense"), format!("{start} is not a URL: write it like `http://localhost:8000/mcp`"));
    assert_eq!(
        text("localhost:8000"),
        format!("{start} does not start with `http://` or `https://`: write it like `http://localhost:8000/mcp`")
    );
    assert_eq!(
        text("http://u:p@host"),
        format!("{start} has a user name or a password in it: leave them out and set `ALGENTA_API_KEY`, or the token")
    );
    let error = Endpoint::resolve_with(None, environment(&[(API_KEY, "Bearer x")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment variable `ALGENTA_API_KEY` can't be used: the token holds white space, a line break or a \
         character outside ASCII: give it bare, without `Bearer`"
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_unicode_is_named() {
    use std::os::unix::ffi::OsStringExt as _;

    for name in [BASE_URL, API_KEY] {
        let lookup = |asked: &str| (asked == name).then(|| OsString::from_vec(vec![b'h', 0xff]));
        let error = Endpoint::resolve_with(None, lookup).unwrap_err();
        assert_eq!((error.kind(), error.came_from()), (&EndpointErrorKind::NotUnicode, EndpointSource::Variable(name)));
    }
    let unused = |asked: &str| (asked == BASE_URL).then(|| OsString::from_vec(vec![0xff]));
    assert!(Endpoint::resolve_with(Some("http://host/mcp"), unused).is_ok());
}

#[test]
fn the_token_comes_from_the_environment_until_it_is_set() {
    let has_token = |value| Endpoint::resolve_with(None, environment(&[(API_KEY, value)])).unwrap().has_token();
    assert!(has_token(TOKEN));
    assert!(!has_token(""));
    assert!(!has_token("  "));
    assert!(!Endpoint::new("http://host/mcp").unwrap().has_token());

    let endpoint = Endpoint::resolve_with(Some("http://host/mcp"), environment(&[(API_KEY, TOKEN)])).unwrap();
    assert!(endpoint.has_token());
    assert!(!endpoint.without_token().has_token());
}

#[test]
fn a_token_must_fit_into_a_header() {
    for token in ["", " ", "a b", "a\n", "a\r\nx-evil: 1", "\ta", "a\0", "ключ", "a\u{7f}", "Bearer x"] {
        let error = BearerToken::new(token).unwrap_err();
        let printed = format!("{error} {error:?}");
        assert!(token.trim().len() < 2 || !printed.contains(&format!("{token:?}")), "{printed}");
    }
    for token in ["x", "a.b-c_d~e+f/g==", "!#$%&'*", &"x".repeat(8192)] {
        assert!(BearerToken::new(token).is_ok(), "{token}");
    }
}

#[test]
fn neither_token_nor_query_shows() {
    let endpoint = Endpoint::new("http://host/mcp?key=hunter2").unwrap().token(BearerToken::new(TOKEN).unwrap());
    for printed in [format!("{endpoint:?}"), format!("{endpoint:#?}")] {
        assert!(printed.contains("BearerToken(..)") && printed.contains("http://host/mcp"), "{printed}");
        assert!(!printed.contains(TOKEN) && !printed.contains(SECRET), "{printed}");
    }
    let error = Endpoint::resolve_with(None, environment(&[(API_KEY, "hunter2 ")])).unwrap_err();
    let source = error.source().unwrap();
    for printed in [error.to_string(), format!("{error:?}"), source.to_string(), format!("{source:?}")] {
        assert!(!printed.contains(SECRET), "{printed}");
    }
}
