//! The document: whole, true and kept.

use std::collections::BTreeSet;

use drowse_server::http::routes::ROUTES;
use serde_json::Value;

use crate::rig::Rig;
use crate::schema::{document, resolve};

fn references<'a>(value: &'a Value, into: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            into.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|inner| references(inner, into));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let mut found = BTreeSet::new();
    references(document(), &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        assert!(resolve(reference).is_object(), "{reference}");
    }
}

#[test]
fn the_document_lists_the_table_and_nothing_else() {
    let paths = document()["paths"].as_object().unwrap();
    let listed: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(|method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let pages = ["/", "/docs", "/openapi.json", "/login/{secret}", "/wake/{id}"];
    let table: BTreeSet<(String, String)> = ROUTES
        .iter()
        .filter(|route| !pages.contains(&route.path))
        .map(|route| (route.path.to_owned(), route.method.to_string()))
        .collect();
    assert_eq!(listed, table);
}

#[test]
fn operations_have_names_of_their_own() {
    let mut names = BTreeSet::new();
    for (path, item) in document()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{method} {path}: {name} is taken");
        }
    }
}

#[test]
fn the_file_in_the_repository_is_the_document() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(&kept, document(), "run `cargo xtask gen`");
}

#[test]
fn the_document_and_its_page_are_open_to_anyone() {
    let rig = Rig::new();
    let served = rig.send("GET", "/openapi.json", &[], &[]).is(200);
    assert_eq!(&served, document());
    let page = rig.send("GET", "/docs", &[], &[]);
    assert_eq!(page.status, 200);
    assert!(page.text.contains("/api/v1/workers/{id}/pause"), "{}", page.text);
    assert!(!page.text.contains("<script"), "nothing runs on this page");
}
