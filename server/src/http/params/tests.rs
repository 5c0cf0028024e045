use axum::http::Request;
use proptest::prelude::*;

use super::*;

fn form(text: &str) -> Params {
    Params::of_form(text.as_bytes()).unwrap()
}

fn json(text: &str) -> Params {
    Params::of_json(text.as_bytes()).unwrap()
}

fn status(refused: Result<Params, Refusal>) -> u16 {
    refused.unwrap_err().status().as_u16()
}

/// Sends a request to the extractor.
fn read(method: &str, uri: &str, content_type: &str, body: impl Into<Body>) -> Result<Params, Refusal> {
    let mut request = Request::builder().method(method).uri(uri);
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    let request = request.extension(UploadLimit(64)).body(body.into()).unwrap();
    futures::executor::block_on(Params::from_request(request, &()))
}

/// Gives these pairs as parts.
fn parts(pairs: &[(String, String)]) -> String {
    let part = |(name, value): &(String, String)| {
        format!("--xYx\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    format!("{}--xYx--\r\n", pairs.iter().map(part).collect::<String>())
}

const MULTIPART: &str = "multipart/form-data; boundary=xYx";

#[test]
fn all_forms_of_one_tree_are_read_alike() {
    let pairs = [
        ("status", "a & b=ä"),
        ("sensitive", "true"),
        ("ids[]", "1"),
        ("ids[]", "2"),
        ("source[privacy]", "private"),
        ("source[deep][er]", "x"),
        ("poll[options][]", "yes"),
        ("poll[options][]", "no"),
        ("rows[][name]", "a"),
        ("rows[][value]", "b"),
        ("rows[][name]", "c"),
        ("limit", "7"),
    ];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let text = pairs.iter().map(|(name, value)| {
        let percent = crate::http::escape::percent;
        format!("{}={}", percent(name), percent(value))
    });
    let text = text.collect::<Vec<_>>().join("&");
    let body = r#"{"status": "a & b=ä", "sensitive": true, "ids": [1, "2"], "nothing": null,
        "source": {"privacy": "private", "deep": {"er": "x"}}, "poll": {"options": ["yes", "no"]},
        "rows": [{"name": "a", "value": "b"}, {"name": "c"}], "limit": 7}"#;
    let wanted = read("GET", &format!("/x?{text}"), "", "").unwrap();
    for method in ["GET", "POST", "DELETE"] {
        let urlencoded = "application/x-www-form-urlencoded; charset=utf-8";
        assert_eq!(read(method, "/x", urlencoded, text.clone()).unwrap(), wanted);
        assert_eq!(read(method, "/x", "application/json", body).unwrap(), wanted);
        assert_eq!(read(method, "/x", MULTIPART, parts(&pairs)).unwrap(), wanted);
    }
    assert_eq!(wanted.text("status"), Some("a & b=ä"));
    assert_eq!(wanted.texts("ids"), ["1", "2"]);
    assert_eq!(wanted.ids("ids[]"), [1, 2]);
    assert_eq!(wanted.text("source[deep][er]"), Some("x"));
    assert_eq!(wanted.tree("source").unwrap().text("privacy"), Some("private"));
    assert_eq!(wanted.texts("poll[options]"), ["yes", "no"]);
    let rows: Vec<_> = wanted.trees("rows").iter().map(|row| (row.text("name"), row.text("value"))).collect();
    assert_eq!(rows, [(Some("a"), Some("b")), (Some("c"), None)]);
    assert_eq!((wanted.number("limit"), wanted.flag("sensitive")), (Some(7), Some(true)));
}

#[test]
fn numbered_trees_are_a_list_in_the_order_of_their_numbers() {
    let numbered = form("f[10][name]=c&f[2][name]=b&f[0][name]=a&f[0][value]=v");
    let names: Vec<_> = numbered.trees("f").iter().filter_map(|row| row.text("name")).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(numbered.text("f[0][value]"), Some("v"));
    assert_eq!(form("o[1]=b&o[0]=a").texts("o"), ["a", "b"]);
    assert!(form("o[x]=b&o[0]=a").texts("o").is_empty());
}

#[test]
fn of_repeated_names_the_last_counts_and_a_list_has_all() {
    let repeated = form("id=1&id=2&id=x");
    assert_eq!(repeated.text("id"), Some("x"));
    assert_eq!(repeated.texts("id"), ["1", "2", "x"]);
    assert_eq!(repeated.ids("id"), [1, 2]);
    assert_eq!(form("id=5").texts("id"), ["5"]);
    assert_eq!(json(r#"{"id": 5}"#).texts("id"), ["5"]);
    assert!(form("").texts("id").is_empty());
}

#[test]
fn flags_are_those_of_rails() {
    for (text, wanted) in [
        ("true", Some(true)),
        ("1", Some(true)),
        ("on", Some(true)),
        ("yes", Some(true)),
        ("false", Some(false)),
        ("0", Some(false)),
        ("OFF", Some(false)),
        ("f", Some(false)),
        ("", None),
    ] {
        assert_eq!(form(&format!("x={text}")).flag("x"), wanted, "{text}");
    }
    assert_eq!(json(r#"{"x": false}"#).flag("x"), Some(false));
    assert_eq!(json(r#"{"x": null}"#).flag("x"), None);
    assert_eq!(form("y=1").flag("x"), None);
}

#[test]
fn a_text_of_another_kind_is_none() {
    let odd = form("a[]=1&b[c]=2");
    assert_eq!((odd.text("a"), odd.text("b"), odd.number("a")), (None, None, None));
    assert!(odd.has("a") && odd.has("b[c]") && !odd.has("c"));
    assert!(odd.tree("a").is_none() && odd.trees("b").is_empty() && odd.file("a").is_none());
    let numbers = json(r#"{"big": 18446744073709551615, "half": 0.5, "less": -1}"#);
    assert_eq!(numbers.id("big"), Some(u64::MAX));
    assert_eq!(
        (numbers.text("half"), numbers.number("less"), numbers.id("less")),
        (Some("0.5"), Some(-1), None)
    );
    assert_eq!((form("id=0").id("id"), form("id=+1").id("id"), form("id=").filled("id")), (None, None, None));
}

#[test]
fn the_query_goes_before_the_body_name_by_name() {
    let both = read("POST", "/x?a=query&c[]=1", "application/json", r#"{"a": "body", "b": 1, "c": [2]}"#);
    let both = both.unwrap();
    assert_eq!((both.text("a"), both.text("b")), (Some("query"), Some("1")));
    assert_eq!(both.texts("c"), ["1"]);
}

#[test]
fn what_is_too_much_or_of_two_kinds_is_refused() {
    let deep = |n: usize| format!("a{}=1", "[b]".repeat(n));
    assert!(Params::of_form(deep(DEPTH_MAX - 1).as_bytes()).is_ok());
    assert_eq!(status(Params::of_form(deep(DEPTH_MAX).as_bytes())), 400);
    let deep = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
    assert!(Params::of_json(deep(DEPTH_MAX).as_bytes()).is_ok());
    assert_eq!(status(Params::of_json(deep(DEPTH_MAX + 1).as_bytes())), 400);
    assert_eq!(status(Params::of_json("[".repeat(100_000).as_bytes())), 400);

    let many = |n: usize| "a[]=1&".repeat(n);
    assert_eq!(form(&many(KEYS_MAX)).texts("a").len(), KEYS_MAX);
    assert_eq!(status(Params::of_form(many(KEYS_MAX + 1).as_bytes())), 400);
    let many = |n: usize| format!("{{\"a\": [{}]}}", vec!["1"; n].join(","));
    assert!(Params::of_json(many(KEYS_MAX - 1).as_bytes()).is_ok());
    assert_eq!(status(Params::of_json(many(KEYS_MAX).as_bytes())), 400);

    for two in ["a=1&a[b]=2", "a[b]=1&a=2", "a[]=1&a=2", "a[]=1&a[b]=2", "a[b]=1&a[]=2"] {
        assert_eq!(status(Params::of_form(two.as_bytes())), 400, "{two}");
    }
    for bytes in [&b"a=%ff"[..], b"%c3=1", b"\xff"] {
        assert_eq!(status(Params::of_form(bytes)), 400);
    }
    assert_eq!(form("a=100%&b=%zz").text("a"), Some("100%"));
}

#[test]
fn a_body_that_cannot_be_read_is_refused_by_what_is_wrong_with_it() {
    let huge = "x".repeat(BODY_MAX + 1);
    assert_eq!(status(read("POST", "/", "application/x-www-form-urlencoded", huge.clone())), 413);
    assert_eq!(status(read("POST", "/", "application/json", huge.clone())), 413);
    assert_eq!(status(read("POST", "/", MULTIPART, parts(&[("a".into(), huge)]))), 413);
    assert_eq!(status(read("POST", "/", "text/plain", "a=1")), 415);
    assert_eq!(status(read("POST", "/", "", "a=1")), 415);
    for body in ["{", "1", "\"a\"", "{} x", "{\"a\": }", "nul"] {
        assert_eq!(status(read("POST", "/", "application/json", body)), 400, "{body}");
    }
    assert_eq!(status(read("POST", "/", "multipart/form-data", "x")), 400);
    assert_eq!(status(read("POST", "/", MULTIPART, "--xYx\r\nnothing")), 400);
    assert_eq!(status(read("GET", "/?a=%ff", "", "")), 400);
    // Nothing at all is well in each form.
    for content_type in ["", "application/json", "text/plain", MULTIPART, "application/x-www-form-urlencoded"]
    {
        assert!(read("POST", "/", content_type, "").unwrap().is_empty(), "{content_type}");
    }
    assert_eq!(json(r#"[{"a": 1}, {"a": 2}]"#).trees("_json").len(), 2);
}

#[test]
fn files_are_kept_with_their_type_up_to_the_limit() {
    let file = |name: &str, body: &str| {
        format!(
            "--xYx\r\nContent-Disposition: form-data; name=\"avatar\"; filename=\"{name}\"\r\n\
             Content-Type: image/png\r\n\r\n{body}\r\n--xYx--\r\n"
        )
    };
    let read = |body: String| read("PATCH", "/", MULTIPART, body);
    let params = read(file("a.png", "\u{1}bytes")).unwrap();
    let avatar = params.file("avatar").unwrap();
    assert_eq!((avatar.content_type.as_deref(), &avatar.bytes[..]), (Some("image/png"), &b"\x01bytes"[..]));
    assert_eq!(params.text("avatar"), None);
    assert!(!read(file("", "")).unwrap().has("avatar"));
    assert!(read(file("a.png", &"x".repeat(64))).is_ok());
    assert_eq!(status(read(file("a.png", &"x".repeat(65)))), 413);
    let two = file("a.png", &"x".repeat(40)).replace("--xYx--\r\n", "") + &file("b.png", &"x".repeat(25));
    assert_eq!(status(read(two)), 413);
    for bytes in ["x", ""] {
        let body = Body::from(file("a.png", bytes));
        let none = futures::executor::block_on(Params::of_multipart(body, MULTIPART, UploadLimit(0)));
        assert_eq!(none.unwrap_err(), Refusal::no_files());
    }
}

/// Names that clients might send, and worse.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab](\\[[ab01]?\\]){0,3}", "[ab\\[\\]=&%+é]{0,12}"]
}

/// Asks everything.
fn ask(params: &ParamTree) {
    for name in params.names().chain(["a[b][]", "a[", "b[0][a]"]) {
        let asked = (params.flag(name), params.number(name), params.id(name), params.texts(name));
        assert!(params.has(name) || asked == (None, None, None, Vec::new()));
        for tree in params.trees(name).into_iter().chain(params.tree(name)) {
            ask(tree);
        }
    }
}

proptest! {
    #[test]
    fn any_pairs_read_the_same_as_query_form_and_parts(
        pairs in prop::collection::vec((name(), "[a-z&=% +é<\"\r\n]{0,8}"), 0..8),
    ) {
        let plain = |(name, _): &(String, String)| !name.contains(['"', '\r', '\n', '%']);
        let pairs: Vec<_> = pairs.into_iter().filter(plain).collect();
        let percent = crate::http::escape::percent;
        let text: Vec<_> = pairs.iter().map(|(n, v)| format!("{}={}", percent(n), percent(v))).collect();
        let text = text.join("&");
        let as_form = Params::of_form(text.as_bytes());
        prop_assert_eq!(&read("GET", &format!("/?{text}"), "", ""), &as_form);
        prop_assert_eq!(&read("PUT", "/", MULTIPART, parts(&pairs)), &as_form);
    }

    #[test]
    fn any_bytes_are_read_or_refused_in_each_form(
        bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(&b"a[]=&%{}\":,1-x\r\n"[..])],
            0..300,
        ),
    ) {
        for content_type in ["application/json", "application/x-www-form-urlencoded", MULTIPART] {
            for body in [bytes.clone(), [b"--xYx\r\n", &bytes[..]].concat()] {
                match read("POST", "/", content_type, body) {
                    Ok(params) => ask(&params),
                    Err(refusal) => prop_assert_eq!(refusal.status().as_u16(), 400),
                }
            }
        }
        if let Ok(params) = Params::of_form(&bytes) {
            ask(&params);
        }
    }

    #[test]
    fn any_json_is_read_as_it_is(value in any_json(3)) {
        let object = serde_json::json!({ "a": value });
        let params = Params::of_json(object.to_string().as_bytes()).unwrap();
        ask(&params);
        let text = match &object["a"] {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Bool(flag) => Some(flag.to_string()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        prop_assert_eq!(params.text("a"), text.as_deref());
        prop_assert_eq!(params.tree("a").is_some(), object["a"].is_object());
    }
}

fn any_json(depth: u32) -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(depth, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec(("[a-c\\[\\]]{0,3}", inner), 0..4)
                .prop_map(|pairs| serde_json::Value::Object(pairs.into_iter().collect())),
        ]
    })
}
