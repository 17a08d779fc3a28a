//! The server as a client sees it, over a pipe, in both eras of the protocol.

mod client;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rmcp::model::{ErrorCode, ResourceContents, SubscribeRequestParams, UnsubscribeRequestParams};
use rmcp::service::ServiceError;
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use client::{Client, DEADLINE, ERAS, Era, Push, updated};

fn put(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        put(folder.path(), path, text);
    }
    folder
}

fn serve(root: &Path, options: FilesOptions) -> FilesServer {
    FilesServer::new(root.to_owned(), "Hand_Book", options).unwrap()
}

async fn connect(root: &Path, era: Era) -> (FilesServer, Client) {
    let server = serve(root, FilesOptions::default());
    let client = Client::new(&server, era).await;
    (server, client)
}

#[tokio::test]
async fn a_folder_is_listed_and_read() {
    let root = folder(&[
        ("refunds.md", "# Refunds\n\nThirty days."),
        ("zh/退款 说明.md", "退款政策\n===\n"),
    ]);
    put(root.path(), "code/main.ts", "const a = 1;");
    put(root.path(), "old.txt", b"caf\xe9");
    put(root.path(), "logo.png", b"\x89PNG\r\n\x1a\n");
    for era in ERAS {
        let (_server, client) = connect(root.path(), era).await;
        let capabilities = client.running.peer_info().unwrap().capabilities.clone();
        let resources = capabilities.resources.unwrap();
        assert_eq!(
            (resources.subscribe, resources.list_changed),
            (Some(true), Some(true)),
            "{era:?}"
        );

        let listed = client.list().await.unwrap();
        let shown: Vec<_> = listed
            .iter()
            .map(|r| (&*r.uri, &*r.name, r.title.as_deref(), r.mime_type.as_deref(), r.size))
            .collect();
        assert_eq!(
            shown,
            [
                (
                    "hand-book:///code/main.ts",
                    "code/main.ts",
                    None,
                    Some("text/x-typescript"),
                    Some(12)
                ),
                ("hand-book:///logo.png", "logo.png", None, Some("image/png"), Some(8)),
                ("hand-book:///old.txt", "old.txt", None, Some("text/plain"), Some(4)),
                (
                    "hand-book:///refunds.md",
                    "refunds.md",
                    Some("Refunds"),
                    Some("text/markdown"),
                    Some(23)
                ),
                (
                    "hand-book:///zh/%E9%80%80%E6%AC%BE%20%E8%AF%B4%E6%98%8E.md",
                    "zh/退款 说明.md",
                    Some("退款政策"),
                    Some("text/markdown"),
                    Some(17)
                ),
            ]
        );
        for resource in &listed {
            let time = resource.annotations.as_ref().unwrap().last_modified.as_deref().unwrap();
            assert!(chrono::DateTime::parse_from_rfc3339(time).is_ok(), "{time}");
        }
        assert_eq!(client.text("hand-book:///refunds.md").await, "# Refunds\n\nThirty days.");
        assert_eq!(client.text(&listed[4].uri).await, "退款政策\n===\n");
        for (uri, blob, mime) in [
            ("hand-book:///old.txt", "Y2Fm6Q==", "text/plain"),
            ("hand-book:///logo.png", "iVBORw0KGgo=", "image/png"),
        ] {
            let expected = ResourceContents::blob(blob, uri).with_mime_type(mime);
            assert_eq!(client.read(uri).await.unwrap(), expected);
        }
        let templates = client.running.list_all_resource_templates().await.unwrap();
        assert!(templates.is_empty());
    }
}

#[tokio::test]
async fn pages_survive_changes() {
    let root = folder(&[]);
    for n in 0..25 {
        put(root.path(), &format!("{n:02}.md"), "");
    }
    let server = serve(root.path(), FilesOptions { page_size: 10, ..FilesOptions::default() });
    let client = Client::new(&server, Era::Legacy).await;
    let (first, cursor) = client.page(None).await.unwrap();
    assert_eq!(first.len(), 10);
    // What the cursor points at goes, and the next page still begins where the first ended.
    fs::remove_file(root.path().join("09.md")).unwrap();
    server.folder.refresh(Default::default(), true).await.unwrap();
    let (second, cursor) = client.page(cursor).await.unwrap();
    assert_eq!((&*second[0].uri, second.len()), ("hand-book:///10.md", 10));
    let (third, cursor) = client.page(cursor).await.unwrap();
    assert_eq!((third.len(), cursor), (5, None));

    put(root.path(), "25.md", "");
    put(root.path(), "26.md", "");
    for n in 27..31 {
        put(root.path(), &format!("{n}.md"), "");
    }
    assert_eq!(client.uris().await.len(), 30, "a last page that is full has no successor");
    let Err(ServiceError::McpError(error)) = client.page(Some("%%".into())).await else { panic!() };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
}

#[tokio::test]
async fn what_is_not_served_does_not_exist() {
    let base = folder(&[
        ("root/a.md", "a"),
        ("root/.gitignore", "*.log\n"),
        ("root/x.log", "log"),
        ("root/.env", "SECRET"),
        ("root/.git/config", "git"),
        ("out/secret.md", "secret"),
    ]);
    let root = base.path().join("root");
    symlink("../out/secret.md", root.join("escape.md")).unwrap();
    symlink("../out", root.join("escape")).unwrap();
    symlink("a.md", root.join("link.md")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe.md"), rustix::fs::Mode::RUSR).unwrap();
    for era in ERAS {
        let (_server, client) = connect(&root, era).await;
        assert_eq!(client.uris().await, ["hand-book:///a.md", "hand-book:///link.md"]);
        assert_eq!(client.text("hand-book:///link.md").await, "a");
        assert_eq!(client.text("HAND-BOOK:///%61.md").await, "a");
        for uri in [
            "hand-book:///x.log",
            "hand-book:///.env",
            "hand-book:///%2Eenv",
            "hand-book:///.git/config",
            "hand-book:///escape.md",
            "hand-book:///escape/secret.md",
            "hand-book:///../out/secret.md",
            "hand-book:///%2e%2e%2fout%2fsecret.md",
            "hand-book:////etc/passwd",
            "hand-book:///pipe.md",
            "hand-book:///none.md",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(client.error(uri).await.0, client.not_found(), "{era:?} {uri}");
        }
    }
}

#[tokio::test]
async fn a_limit_is_an_error_that_names_it() {
    let root = folder(&[("a.md", "123456"), ("b.md", "\u{1}\u{1}\u{1}")]);
    put(root.path(), "c.bin", [0; 6]);
    put(root.path(), "d.bin", [0; 5]);
    let options = FilesOptions {
        max_text_bytes: 5,
        max_blob_bytes: 5,
        max_message_bytes: 7,
        ..Default::default()
    };
    let server = serve(root.path(), options);
    let client = Client::new(&server, Era::Legacy).await;
    assert_eq!(client.uris().await.len(), 4);
    for (uri, size, limit) in [
        ("hand-book:///a.md", 6, 5),
        ("hand-book:///b.md", 18, 7),
        ("hand-book:///c.bin", 6, 5),
        ("hand-book:///d.bin", 8, 7),
    ] {
        let (code, message) = client.error(uri).await;
        assert_eq!(code, ErrorCode::INTERNAL_ERROR);
        assert!(
            message.starts_with(&format!("{uri} takes {size} bytes, and the limit is {limit}")),
            "{message}"
        );
    }
}

#[tokio::test]
async fn of_a_text_over_the_limit_both_ends_are_given() {
    let lines = |from: usize, to: usize| -> String {
        (from..to).map(|n| format!("第 {n} 行\n")).collect()
    };
    let whole = lines(1000, 2000);
    let root = folder(&[("a.log", &whole), ("b.md", &whole)]);
    put(root.path(), "c.txt", [b"caf\xe9 ".as_slice(); 2000].concat());
    for max_blob_bytes in [20, 1 << 20] {
        let options = FilesOptions { max_text_bytes: 4000, max_blob_bytes, ..Default::default() };
        let server = serve(root.path(), options);
        let client = Client::new(&server, Era::Legacy).await;
        let log = client.text("hand-book:///a.log").await;
        let (head, tail) = log.split_once("[… ").unwrap();
        let (gap, tail) = tail.split_once(" bytes are left out …]\n").unwrap();
        assert!(whole.starts_with(head) && head.ends_with('\n') && head.len() > 2900, "{head}");
        assert!(whole.ends_with(tail) && tail.len() > 900, "{tail}");
        assert_eq!(head.len() + tail.len() + gap.parse::<usize>().unwrap(), whole.len());
        let document = client.text("hand-book:///b.md").await;
        let (head, tail) = document.split_once("[… ").unwrap();
        assert!(whole.starts_with(head) && head.len() > 3900 && tail.ends_with("left out …]\n"));
        // What isn't UTF-8 is bytes, whose beginning says nothing.
        assert_eq!(client.read("hand-book:///c.txt").await.is_ok(), max_blob_bytes > 20);
    }
}

#[tokio::test]
async fn an_unreadable_file_is_no_missing_one() {
    let root = folder(&[("a.md", "a"), ("b.md", "b")]);
    put(root.path(), "closed/c.md", "c");
    for path in ["a.md", "closed"] {
        fs::set_permissions(root.path().join(path), fs::Permissions::from_mode(0o000)).unwrap();
    }
    if fs::read(root.path().join("a.md")).is_ok() {
        return; // Root reads everything; there is nothing to see then.
    }
    let (_server, mut client) = connect(root.path(), Era::Legacy).await;
    assert_eq!(client.uris().await.len(), 2);
    let (code, message) = client.error("hand-book:///a.md").await;
    assert_eq!(code, ErrorCode::INTERNAL_ERROR);
    assert!(message.contains("Permission denied"), "{message}");
    // Events are had nevertheless, and what becomes readable is served.
    for path in ["a.md", "closed"] {
        fs::set_permissions(root.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    client.expect(Push::ListChanged).await;
    assert_eq!(client.text("hand-book:///a.md").await, "a");
    assert_eq!(client.text("hand-book:///closed/c.md").await, "c");
}

#[tokio::test]
async fn changes_are_pushed() {
    for era in ERAS {
        let root = folder(&[("a.md", "one"), ("b.md", "one"), ("sub/c.md", "one")]);
        let (_server, mut client) = connect(root.path(), era).await;
        let [a, b, c] = ["hand-book:///a.md", "hand-book:///b.md", "hand-book:///sub/c.md"];
        client.list().await.unwrap();
        client.follow(&[a, c]).await;

        put(root.path(), "a.md", "two");
        client.expect(updated(a)).await;
        assert_eq!(client.text(a).await, "two");

        // An editor's save by rename, and one in a folder below.
        put(root.path(), ".a.md.tmp", "three");
        fs::rename(root.path().join(".a.md.tmp"), root.path().join("a.md")).unwrap();
        client.expect(updated(a)).await;
        assert_eq!(client.text(a).await, "three");
        put(root.path(), "b.md", "nobody asked");
        put(root.path(), "sub/c.md", "two");
        client.expect(updated(c)).await;

        // New ones, also in new folders in which they stand at once.
        put(root.path(), "new/deep/er/d.md", "d");
        client.expect(Push::ListChanged).await;
        let d = "hand-book:///new/deep/er/d.md";
        assert_eq!(client.uris().await, [a, b, d, c]);
        put(root.path(), "new/deep/er/e.md", "e");
        client.expect(Push::ListChanged).await;
        assert_eq!(client.text("hand-book:///new/deep/er/e.md").await, "e");

        fs::remove_file(root.path().join("b.md")).unwrap();
        client.expect(Push::ListChanged).await;
        fs::rename(root.path().join("new"), root.path().join("moved")).unwrap();
        client.expect(Push::ListChanged).await;
        assert_eq!(client.error(d).await.0, client.not_found());
        put(root.path(), "moved/deep/er/f.md", "a moved folder is followed");
        client.expect(Push::ListChanged).await;

        put(root.path(), ".gitignore", "/moved\n");
        client.expect(Push::ListChanged).await;
        assert_eq!(client.uris().await, [a, c]);
        put(root.path(), "moved/deep/er/f.md", "ignored: nobody is told");
        put(root.path(), "a.md", "four");
        client.expect(updated(a)).await;
    }
}

#[tokio::test]
async fn a_file_is_followed_by_the_uri_as_the_client_wrote_it() {
    for era in ERAS {
        let root = folder(&[("退款.md", "one")]);
        let (_server, mut client) = connect(root.path(), era).await;
        client.list().await.unwrap();
        client.follow(&["hand-book:///退款.md"]).await;
        put(root.path(), "退款.md", "two");
        client.expect(updated("hand-book:///退款.md")).await;
    }
}

#[tokio::test]
#[allow(deprecated)]
async fn a_subscription_ends() {
    let root = folder(&[("a.md", "one"), ("b.md", "one")]);
    let (_server, mut client) = connect(root.path(), Era::Legacy).await;
    let [a, b] = ["hand-book:///a.md", "hand-book:///b.md"];
    client.list().await.unwrap();
    client.follow(&[a, b]).await;
    client.running.unsubscribe(UnsubscribeRequestParams::new(a)).await.unwrap();
    put(root.path(), "a.md", "two");
    put(root.path(), "b.md", "two");
    client.expect(updated(b)).await;
    let outside = client.running.subscribe(SubscribeRequestParams::new("file:///etc/passwd")).await;
    assert!(matches!(outside, Err(ServiceError::McpError(e)) if e.code == ErrorCode(-32002)));
}

#[tokio::test]
async fn a_link_swap_is_an_update() {
    // How Kubernetes replaces a config map.
    let root = folder(&[("..one/a.md", "one"), ("..two/a.md", "two")]);
    symlink("..one", root.path().join("..data")).unwrap();
    symlink("..data/a.md", root.path().join("a.md")).unwrap();
    let (_server, mut client) = connect(root.path(), Era::Legacy).await;
    let a = "hand-book:///a.md";
    assert_eq!(client.uris().await, [a]);
    client.follow(&[a]).await;
    symlink("..two", root.path().join("..next")).unwrap();
    fs::rename(root.path().join("..next"), root.path().join("..data")).unwrap();
    client.wait_for(updated(a)).await;
    assert_eq!(client.text(a).await, "two");
}

#[tokio::test]
async fn a_root_that_is_a_link_may_be_swapped() {
    let base =
        folder(&[("releases/1/a.md", "one"), ("releases/2/a.md", "two"), ("releases/2/b.md", "")]);
    let root = base.path().join("current");
    symlink("releases/1", &root).unwrap();
    let (_server, mut client) = connect(&root, Era::Modern).await;
    let a = "hand-book:///a.md";
    assert_eq!(client.uris().await, [a]);
    client.follow(&[a]).await;
    symlink("releases/2", base.path().join("next")).unwrap();
    fs::rename(base.path().join("next"), &root).unwrap();
    client.expect(Push::ListChanged).await;
    client.wait_for(updated(a)).await;
    assert_eq!(client.text(a).await, "two");
    put(base.path(), "releases/2/a.md", "three");
    client.wait_for(updated(a)).await;
}

#[tokio::test]
async fn a_missing_folder_is_an_error_and_no_empty_list() {
    for era in ERAS {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        let (_server, mut client) = connect(&root, era).await;
        client.follow(&["hand-book:///a.md"]).await;
        let Err(ServiceError::McpError(error)) = client.list().await else { panic!("{era:?}") };
        assert!(error.message.contains("doesn't exist; create it"), "{}", error.message);
        assert_eq!(client.error("hand-book:///a.md").await.0, ErrorCode::INTERNAL_ERROR);

        put(base.path(), "root/a.md", "one");
        client.wait_for(Push::ListChanged).await;
        while client.list().await.is_err() {
            client.wait_for(Push::ListChanged).await;
        }
        assert_eq!(client.text("hand-book:///a.md").await, "one");

        // Gone, and nobody may take its files for gone.
        fs::rename(&root, base.path().join("away")).unwrap();
        client.wait_for(Push::ListChanged).await;
        assert!(client.list().await.is_err());
        // Back as an empty mount point: not believed at once either.
        fs::create_dir(&root).unwrap();
        let Err(ServiceError::McpError(error)) = client.list().await else { panic!("{era:?}") };
        assert!(error.message.contains("replaced by an empty one"), "{}", error.message);

        put(base.path(), "root/b.md", "two");
        while client.list().await.is_err() {
            client.wait_for(Push::ListChanged).await;
        }
        assert_eq!(client.uris().await, ["hand-book:///b.md"]);
        // And it is followed as before.
        client.follow(&["hand-book:///b.md"]).await;
        put(base.path(), "root/b.md", "three");
        client.wait_for(updated("hand-book:///b.md")).await;
    }
}

#[tokio::test]
async fn an_empty_folder_is_an_empty_list() {
    let root = folder(&[("a.md", "")]);
    let (_server, client) = connect(root.path(), Era::Legacy).await;
    assert_eq!(client.uris().await.len(), 1);
    fs::remove_file(root.path().join("a.md")).unwrap();
    assert_eq!(client.uris().await.len(), 0, "its own files went: that is true");
}

#[tokio::test]
async fn polling_sees_what_events_would() {
    let root = folder(&[("a.md", "one")]);
    let server = serve(root.path(), FilesOptions { polling: true, ..FilesOptions::default() });
    let mut client = Client::new(&server, Era::Legacy).await;
    client.list().await.unwrap();
    client.follow(&["hand-book:///a.md"]).await;
    put(root.path(), "a.md", "longer");
    client.expect(updated("hand-book:///a.md")).await;
    put(root.path(), "sub/b.md", "");
    client.expect(Push::ListChanged).await;
}

#[tokio::test]
async fn following_ends_with_the_last_user() {
    let root = folder(&[("a.md", "one")]);
    let server = serve(root.path(), FilesOptions::default());
    let folder = Arc::downgrade(&server.folder);
    let client = Client::new(&server, Era::Legacy).await;
    drop(server);
    assert_eq!(client.text("hand-book:///a.md").await, "one");
    client.running.cancel().await.unwrap();
    timeout(DEADLINE, async {
        while folder.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the folder is let go");
}

#[tokio::test]
async fn a_name_must_make_a_scheme() {
    for name in ["", "my docs", "https", "文档"] {
        assert!(FilesServer::new("/".into(), name, FilesOptions::default()).is_err(), "{name:?}");
    }
}

#[tokio::test]
async fn a_client_that_says_nothing_is_no_error() {
    let root = folder(&[]);
    let server = serve(root.path(), FilesOptions::default());
    let (ours, theirs) = tokio::io::duplex(64);
    drop(theirs);
    server.serve(ours).await.unwrap();
}

#[tokio::test]
async fn the_sample_handbook_has_its_questions() {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Questions {
        documents: Vec<Document>,
    }
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Document {
        expect: String,
        questions: [String; 3],
        mixed: String,
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(project.join("tests/handbook_questions.toml")).unwrap();
    let documents = toml::from_str::<Questions>(&text).unwrap().documents;

    let server =
        FilesServer::new(project.join("data/handbook"), "handbook", FilesOptions::default())
            .unwrap();
    let client = Client::new(&server, Era::Modern).await;
    let listed: BTreeSet<_> = client.uris().await.into_iter().collect();
    assert_eq!(documents.iter().map(|d| d.expect.clone()).collect::<BTreeSet<_>>(), listed);
    assert_eq!(documents.len(), listed.len());
    let asked = documents.iter().flat_map(|d| d.questions.iter().chain([&d.mixed]));
    assert_eq!(
        asked.collect::<BTreeSet<_>>().len(),
        documents.len() * 4,
        "a question stands twice"
    );

    // The two first searches of the README have one right answer each.
    for (word, right) in [("deadline", "refunds.md"), ("退款", "zh-cn/%E9%80%80%E6%AC%BE.md")] {
        for uri in &listed {
            let has = client.text(uri).await.to_lowercase().contains(word);
            assert_eq!(has, *uri == format!("handbook:///{right}"), "{word} in {uri}");
        }
    }
}
