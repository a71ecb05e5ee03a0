//! What is counted.

use std::hint::black_box;

use rmcp::model::Tool;
use serde_json::Value;
use tower::Layer;
use tower_algenta::{
    ArgumentScrubLayer, ExecutionBlocked, ExecutionReceipt, GovernanceLayer, HiddenFields, Matching, Profile,
    ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer, ToolRequest,
};

use crate::{
    Cases, cases,
    cases::services::{Bare, Engine, Fused, boxed_futures, boxed_services, identities},
};

pub(crate) fn all() -> Cases {
    let mut cases = Cases::default();
    // The first: what measuring costs.
    cases.add("nothing", || Box::new(|| ()));
    stack(&mut cases);
    scrub(&mut cases);
    schema(&mut cases);
    names(&mut cases);
    receipt(&mut cases);
    denial(&mut cases);
    cases
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
    for keys in cases::KEYS.into_iter().chain([2000]) {
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
    fn clean(cases: &mut Cases, name: String, make: impl Fn() -> Vec<Tool> + 'static) {
        cases.add(name, move || {
            let (fields, mut tools) = (HiddenFields::new(), make());
            Box::new(move || {
                for tool in black_box(&mut tools) {
                    let name = std::mem::take(&mut tool.name);
                    let _ = black_box(fields.scrub_tool(&name, tool));
                    tool.name = name;
                }
            })
        });
    }
    for count in [7, 28, 138, 552, 5000] {
        clean(cases, format!("schema/scrub/{count}"), move || cases::clean_tools(count));
    }
    clean(cases, "schema/scrub_of_seven/5000".to_owned(), || cases::clean_tools_of(7, 5000));
    cases.add("schema/touch/138", || {
        let tools = cases::clean_tools(138);
        Box::new(move || _ = black_box(cases::touch_all_keys_of(black_box(&tools))))
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
    cases.add("receipt/copy", || {
        let text = cases::text_of(&cases::receipt());
        Box::new(move || drop(black_box(black_box(&text).clone())))
    });
    cases.add("receipt/search", || {
        let result = cases::receipt();
        Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
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
    let execution = || ToolRequest::call("execute_decision", cases::execution());
    let engine = Engine::answering(cases::receipt);
    cases.add_call("receipt/stack", GovernanceLayer::new(Profile::Execute).layer(engine), execution);
    cases.add_call("receipt/bare", engine, execution);
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
        let result = cases::text_result(cases::prose(cases::PREFIXES[0]));
        Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
    });
    for size in cases::PREFIXES {
        cases.add(format!("denial/long_prefix/{size}"), move || {
            let result = cases::text_result(cases::prose(size) + &cases::text_of(&cases::denial()));
            Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
        });
        cases.add(format!("denial/memchr/{size}"), move || {
            let text = cases::prose(size);
            Box::new(move || _ = black_box(memchr::memchr(b'{', black_box(text.as_bytes()))))
        });
    }
    for (shape, piece) in cases::HOSTILE {
        for size in [1 << 14, 1 << 16] {
            cases.add(format!("denial/hostile/{shape}/{size}"), move || {
                let result = cases::text_result(cases::repeated(piece, size));
                Box::new(move || drop(black_box(ExecutionBlocked::from_result(black_box(&result)))))
            });
        }
    }
}
