//! `SECURITY.md` names tests that exist.

use std::process::Command;

const SECURITY: &str = include_str!("../../SECURITY.md");

/// The full names of all tests in this binary, as it lists them itself.
fn tests() -> Vec<String> {
    let this = std::env::current_exe().expect("this binary has a path");
    let listed = Command::new(this).args(["--list", "--format", "terse"]).output().expect("it lists its tests");
    let listed = String::from_utf8(listed.stdout).expect("names are text");
    listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Whether `name` is the end of a test's name, from a module on, or a module that has tests.
fn is_one_of(tests: &[String], name: &str) -> bool {
    tests.iter().any(|test| {
        let is_function = test.strip_suffix(name).is_some_and(|path| path.is_empty() || path.ends_with("::"));
        let is_module = test.strip_prefix(name).is_some_and(|path| path.starts_with("::"));
        is_function || is_module
    })
}

/// What stands between back-ticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The promises, each with the names of its tests. What follows the table has no promise of its own.
fn promises() -> Vec<(&'static str, Vec<&'static str>)> {
    let (_, section) = SECURITY.split_once("## What the stack promises").expect("the promises have a section");
    let (section, _) = section.split_once("\n## ").expect("and another one follows");
    let (_, table) = section.split_once("|---|---|\n").expect("they are a table");
    let (rows, rest) = table.split_once("\n\n").expect("which ends");
    let row = |row: &'static str| {
        let (promise, tests) = row.trim_matches('|').split_once('|').expect("a row has two columns");
        (promise.trim(), quoted(tests))
    };
    rows.lines().map(row).chain([("", quoted(rest))]).collect()
}

#[test]
fn every_promise_names_tests_that_exist() {
    let tests = tests();
    let promises = promises();
    assert!(promises.len() > 20, "the table is read: {promises:?}");
    for (promise, names) in promises {
        assert!(!names.is_empty(), "nothing holds \"{promise}\"");
        for name in names {
            assert!(is_one_of(&tests, name), "no test is called {name}, which should hold \"{promise}\"");
        }
    }
}

#[test]
fn a_name_is_no_part_of_another() {
    let tests = ["stack::the_token".to_owned(), "properties::p1::p1_a".to_owned()];
    for name in ["stack", "stack::the_token", "the_token", "p1_a", "p1::p1_a", "properties", "properties::p1"] {
        assert!(is_one_of(&tests, name), "{name}");
    }
    for name in ["", "stac", "tack", "token", "stack::", "::the_token", "p1", "stack::p1_a", "stack::the_token::x"] {
        assert!(!is_one_of(&tests, name), "{name}");
    }
}
