use super::super::fake::{entry, key, time};
use super::super::tests::{app, owner};
use super::*;

async fn read(request: ReadRequest) -> Result<ReadResponse, ApiError> {
    app().read(&owner(), request).await
}

fn of(uri: &str) -> ReadRequest {
    ReadRequest { uri: uri.into(), ..ReadRequest::default() }
}

fn text(response: &ReadResponse) -> &str {
    response.contents[0].text.as_deref().unwrap()
}

#[tokio::test]
async fn the_last_good_text_stands_in_for_a_server_that_is_away() {
    let response = read(of("handbook:///refunds.md")).await.unwrap();
    assert!(response.stale && !response.truncated);
    assert_eq!(text(&response), "# Refunds\nA refund takes 14 days.\n\nAsk billing.\n");
    assert!(response.notes[0].contains("can't be read now"), "{:?}", response.notes);

    let lines = ReadRequest { lines: Some("2-2".into()), ..of("handbook:///refunds.md") };
    assert_eq!(text(&read(lines).await.unwrap()), "A refund takes 14 days.\n");

    let outline = ReadRequest { outline: true, ..of("handbook:///refunds.md") };
    let outline = read(outline).await.unwrap();
    assert!(outline.contents.is_empty());
    assert_eq!(outline.outline.unwrap()[0].heading, "Refunds");

    let error = read(of("handbook:///logo.png")).await.unwrap_err().detail;
    assert_eq!(error.code, ErrorCode::ServerAway);
    assert!(error.hint.unwrap().contains("resdex status"));
}

#[tokio::test]
async fn a_budget_cuts_at_a_line_and_says_how_to_go_on() {
    let request = ReadRequest { max_tokens: Some(5), ..of("handbook:///refunds.md") };
    let response = read(request).await.unwrap();
    assert!(response.truncated);
    assert_eq!(text(&response), "# Refunds\n");
    assert_eq!(response.next_lines.as_deref(), Some("2-"));
    assert!(response.outline.is_some());
}

#[tokio::test]
async fn a_uri_is_found_as_it_is_or_as_url_parsers_make_it() {
    for (uri, found) in [
        ("handbook:///退款.md", "handbook:///退款.md"),
        ("handbook:///%E9%80%80%E6%AC%BE.md", "handbook:///退款.md"),
        ("WIKI://pages/hr/pay", "wiki://pages/hr/pay"),
    ] {
        assert_eq!(read(of(uri)).await.unwrap().uri, found, "{uri}");
    }
    let shared = ReadRequest { server: Some("wiki".into()), ..of("shared://note") };
    assert_eq!(text(&read(shared).await.unwrap()), "one\n");
}

#[tokio::test]
async fn what_is_not_found_is_named() {
    let error = read(of("shared://note")).await.unwrap_err().detail;
    assert_eq!(error.code, ErrorCode::Ambiguous);
    assert_eq!(error.message, "several servers have shared://note: handbook, wiki");

    let error = read(of("handbook:///refund.md")).await.unwrap_err().detail;
    assert_eq!(error.code, ErrorCode::NotFound);
    assert!(error.hint.unwrap().starts_with("the nearest: handbook:///refunds.md"));

    let unlisted = ReadRequest { server: Some("wiki".into()), ..of("wiki://unlisted") };
    assert_eq!(read(unlisted).await.unwrap_err().detail.code, ErrorCode::ServerAway);

    let unknown = ReadRequest { server: Some("wikki".into()), ..of("shared://note") };
    assert_eq!(read(unknown).await.unwrap_err().detail.code, ErrorCode::UnknownServer);

    for (request, field) in [
        (ReadRequest { lines: Some("4-2".into()), ..of("shared://note") }, "lines: "),
        (ReadRequest { max_tokens: Some(0), ..of("shared://note") }, "max_tokens: "),
        (ReadRequest { part: Some(9), ..of("handbook:///refunds.md") }, "part: "),
    ] {
        let error = read(request).await.unwrap_err().detail;
        assert!(error.message.starts_with(field), "{error:?}");
    }
}

fn item(index: u32, body: Body) -> Item {
    Item { index, uri: format!("x:///{index}"), mime_type: None, body, headings: vec![] }
}

fn cut(items: Vec<Item>, request: &ReadRequest) -> Result<ReadResponse, ApiError> {
    let lines = request.lines.as_deref().map_or(Lines::ALL, |l| Lines::parse(l).unwrap());
    answer(&key("s", "x:///"), request, lines, Reading { items, ..Reading::default() })
}

#[test]
fn contents_are_cut_to_what_was_asked() {
    let items = || {
        vec![
            item(0, Body::Text("one\ntwo\n".into())),
            item(1, Body::Blob("AAAA".into())),
            item(2, Body::Text("three\n".into())),
        ]
    };
    let all = cut(items(), &of("x")).unwrap();
    assert_eq!(all.contents.len(), 3);
    assert_eq!(all.contents[1].blob.as_deref(), Some("AAAA"));
    assert!(all.contents[1].text.is_none());

    let one = cut(items(), &ReadRequest { part: Some(2), ..of("x") }).unwrap();
    assert_eq!(text(&one), "three\n");

    let one_line = Some(chunk::estimate_tokens("one\n"));
    let few = cut(items(), &ReadRequest { max_tokens: one_line, ..of("x") }).unwrap();
    assert!(few.truncated);
    assert_eq!(few.next_lines.as_deref(), Some("2-"));
    assert_eq!(few.notes, ["contents 2 left out: ask with `part`"]);

    let lines = ReadRequest { lines: Some("1".into()), ..of("x") };
    assert!(cut(items(), &lines).unwrap_err().detail.message.starts_with("lines: "));

    let long = vec![item(0, Body::Text("a long line without an end ".repeat(20)))];
    let piece = cut(long, &ReadRequest { max_tokens: Some(5), ..of("x") }).unwrap();
    assert!(piece.truncated && piece.next_lines.is_none());
    assert!(!text(&piece).is_empty() && piece.notes[0].contains("max_tokens"));
}

#[test]
fn stored_chunks_make_the_text_again() {
    let mut entry = entry("s", "x:///a.html", "T", "第一段。\n\nsecond\n\nthird");
    entry.mime_type = Some("text/html".into());
    entry.indexed_at = time();
    let items = stored(&entry);
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].body, Body::Text("第一段。\n\nsecond\n\nthird".into()));
    assert_eq!(items[0].mime_type.as_deref(), Some("text/markdown"));
    assert_eq!(items[0].headings.len(), 1);
}

#[tokio::test]
async fn a_hidden_resource_reads_as_one_that_is_not_there() {
    let app = app();
    let mut config = crate::config::Config::clone(&app.config.load());
    let scope =
        crate::config::ScopeConfig { mime_types: vec!["image/*".into()], ..Default::default() };
    config.scopes.insert("pictures".into(), scope);
    app.config.store(Arc::new(config));
    let bot = Caller::of_scope("pictures", "test");
    let answer = async |uri: &str, server: Option<&str>| {
        let request = ReadRequest { server: server.map(Into::into), ..of(uri) };
        let detail = app.read(&bot, request).await.unwrap_err().detail;
        (detail.code, detail.message.replace(uri, "URI"), detail.hint)
    };
    for server in [None, Some("wiki")] {
        let hidden = answer("wiki://pages/hr/pay", server).await;
        assert_eq!(hidden, answer("wiki://pages/hr/paz", server).await, "{server:?}");
    }
    assert_eq!(answer("x", Some("handbook")).await.0, ErrorCode::ServerAway);
}
