//! What the index holds of one resource, and the tree of URIs.

use super::api::{
    Branch, ChunkItem, OutcomeKind, ResourceItem, ResourceQuery, ResourceResponse, TreeQuery,
    TreeResponse,
};
use super::error::ApiError;
use super::scope::Caller;
use super::{App, cursor, parse_cursor};
use crate::chunk::estimate_tokens;
use crate::index::{ResourceRow, ResourcesRequest};
use crate::model::{Chunk, Origin, Outcome, ResourceKey};

/// Branches and resources of one page of the tree.
const TREE_PAGE: usize = 200;
/// Resources that are looked at in one go; after a branch it is begun with one again.
const MOST_AT_ONCE: usize = 64;
/// How far a way without forks is followed.
const MAX_STEPS: usize = 32;

impl App {
    /// A row of the index as lists show it.
    pub(super) fn item(&self, row: ResourceRow) -> ResourceItem {
        let (outcome, reason) = match row.outcome {
            Outcome::Indexed => (OutcomeKind::Indexed, None),
            Outcome::Skipped(reason) => (OutcomeKind::Skipped, Some(reason)),
        };
        ResourceItem {
            stale: self.control.is_stale(&row.key),
            server: row.key.server.to_string(),
            uri: row.key.uri.to_string(),
            title: row.title,
            mime_type: row.mime_type,
            size: row.size,
            outcome,
            reason,
            indexed_at: row.indexed_at,
        }
    }

    /// Everything that the index holds of a resource.
    ///
    /// # Errors
    /// The index doesn't hold it, several servers have it, or a fault of the index.
    pub fn resource(
        &self,
        caller: &Caller,
        query: &ResourceQuery,
    ) -> Result<ResourceResponse, ApiError> {
        let view = self.view(caller, query.scope.as_deref())?;
        let key = self.resolve(&view, &query.uri, query.server.as_deref())?;
        let entry = self.store.entry(&key)?;
        let entry = entry.ok_or_else(|| ApiError::not_indexed(&query.uri))?;
        let history = self.history.of(&key);
        let resource = &entry.resource;
        let title = match (&resource.title, &entry.document_title) {
            (Some(title), _) if !title.is_empty() => title.clone(),
            (_, Some(title)) if !title.is_empty() => title.clone(),
            _ => resource.label().to_owned(),
        };
        let item = self.item(ResourceRow {
            key,
            title,
            mime_type: entry.mime_type.clone().or_else(|| resource.mime_type.clone()),
            size: resource.size,
            resource: resource.clone(),
            outcome: entry.outcome.clone(),
            indexed_at: entry.indexed_at,
        });
        Ok(ResourceResponse {
            item,
            name: resource.name.clone(),
            description: resource.description.clone(),
            last_modified: resource.last_modified.clone(),
            uri_template: match &resource.origin {
                Origin::Listed => None,
                Origin::Template(template) => Some(template.clone()),
            },
            chunks: entry.chunks.into_iter().map(chunk_item).collect(),
            history,
        })
    }

    /// What stands directly below a prefix, as far as the caller may see it.
    ///
    /// # Errors
    /// An unknown server or scope, a cursor that no page gave, or a fault of the index.
    pub fn tree(&self, caller: &Caller, query: &TreeQuery) -> Result<TreeResponse, ApiError> {
        let view = self.view(caller, query.scope.as_deref())?;
        let server = self.server_named(&view, &query.server)?;
        let after = query.cursor.as_deref().map(parse_cursor).transpose()?;
        let key = |uri: &str| ResourceKey { server: server.clone(), uri: uri.into() };
        let mut prefix = query.prefix.clone().unwrap_or_default();
        for step in 0.. {
            let request = ResourcesRequest {
                filter: view.filter.clone(),
                within: Some(key(&prefix)),
                after: after.clone(),
                ..ResourcesRequest::default()
            };
            let page = self.level(request, &prefix)?;
            let forks = page.branches.len() != 1 || !page.resources.is_empty();
            if forks || after.is_some() || page.next_cursor.is_some() || step == MAX_STEPS {
                return Ok(page);
            }
            prefix.clone_from(&page.branches[0].prefix);
        }
        Ok(TreeResponse::default())
    }

    /// One level: from each branch on it jumps over what is in there.
    fn level(&self, mut request: ResourcesRequest, prefix: &str) -> Result<TreeResponse, ApiError> {
        let mut level = TreeResponse { prefix: prefix.to_owned(), ..TreeResponse::default() };
        request.limit = 1;
        loop {
            let page = self.store.resources(&request)?;
            let (more, mut jumped) = (page.more, false);
            for row in page.resources {
                if level.branches.len() + level.resources.len() == TREE_PAGE {
                    level.next_cursor = request.after.as_ref().map(cursor);
                    return Ok(level);
                }
                let rest = row.key.uri.get(prefix.len()..).unwrap_or_default();
                let Some(end) = branch_end(&row.key.uri, prefix.len()) else {
                    request.after = Some(row.key.clone());
                    level.resources.push(self.item(row));
                    continue;
                };
                let name = rest.get(..end).unwrap_or_default().to_owned();
                let branch = format!("{prefix}{name}");
                // The last URI that could begin like this.
                let last = format!("{branch}{}", char::MAX).into();
                request.after = Some(ResourceKey { server: row.key.server, uri: last });
                level.branches.push(Branch { name, prefix: branch });
                jumped = true;
                break;
            }
            if !more && !jumped {
                return Ok(level);
            }
            request.limit = if jumped { 1 } else { (request.limit * 2).min(MOST_AT_ONCE) };
        }
    }
}

/// Where the branch ends on which a URI goes on from a byte, after the `/`. The `//` before an
/// authority is no end, and what comes after `?` or `#` is no path.
fn branch_end(uri: &str, from: usize) -> Option<usize> {
    let start = match uri.find("://") {
        Some(at) => (at + 3).max(from),
        None => from,
    };
    let rest = uri.get(start..)?;
    let path = rest.find(['?', '#']).map_or(rest, |end| &rest[..end]);
    path.find('/').map(|at| start + at + 1 - from)
}

fn chunk_item(chunk: Chunk) -> ChunkItem {
    ChunkItem {
        heading_path: chunk.heading_path,
        start_line: chunk.lines.0,
        end_line: chunk.lines.1,
        page: chunk.page,
        part: chunk.part,
        tokens: estimate_tokens(&chunk.text),
        text: chunk.text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api::ErrorCode;
    use crate::serve::fake::{FakeStore, entry};
    use crate::serve::tests::{app, owner, with_store};

    #[test]
    fn branches_end_at_slashes_of_the_path() {
        for (uri, from, end) in [
            ("handbook:///zh/a.md", 0, Some(12)),
            ("handbook:///zh/a.md", 12, Some(3)),
            ("handbook:///zh/a.md", 15, None),
            ("wiki://pages/eng", 0, Some(13)),
            ("urn:a:b", 0, None),
            ("a/b", 0, Some(2)),
            ("x://q?a=/b", 0, None),
            ("x://q#/b", 0, None),
        ] {
            assert_eq!(branch_end(uri, from), end, "{uri} {from}");
        }
    }

    #[test]
    fn a_tree_is_walked_level_by_level() {
        let mut uris = vec!["w://top".to_owned(), "w://z/only/way/leaf".into()];
        uris.extend((0..450).map(|n| format!("w://many/{n:03}")));
        uris.extend(
            (0..30).flat_map(|a| [format!("w://dirs/{a:02}/x"), format!("w://dirs/{a:02}/y")]),
        );
        let app = with_store(FakeStore::of(uris.iter().map(|uri| entry("wiki", uri, "T", "x\n"))));
        let tree = |prefix: &str, cursor: Option<String>| {
            let prefix = Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty());
            let query = TreeQuery { server: "wiki".into(), prefix, cursor, ..TreeQuery::default() };
            app.tree(&owner(), &query).unwrap()
        };
        let names = |level: &TreeResponse| {
            level.branches.iter().map(|branch| branch.name.clone()).collect::<Vec<_>>()
        };
        let root = tree("", None);
        assert_eq!(names(&root), ["w://dirs/", "w://many/", "w://z/"]);
        assert_eq!(root.resources[0].uri, "w://top");
        assert_eq!(names(&tree("w://dirs/", None)).len(), 30);
        let leaf = tree("w://z/", None);
        assert_eq!(
            (&*leaf.prefix, &*leaf.resources[0].uri),
            ("w://z/only/way/", "w://z/only/way/leaf")
        );
        let (mut seen, mut cursor) = (vec![], None);
        loop {
            let page = tree("w://many/", cursor);
            assert!(page.resources.len() <= TREE_PAGE);
            seen.extend(page.resources.into_iter().map(|item| item.uri));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, uris[2..452]);
        let unknown = TreeQuery { server: "wikki".into(), ..TreeQuery::default() };
        let error = app.tree(&owner(), &unknown).unwrap_err();
        assert_eq!(error.detail.code, ErrorCode::UnknownServer);
    }

    #[test]
    fn a_scope_sees_its_part_of_a_document_and_of_the_tree() {
        let app = app();
        let query = ResourceQuery { uri: "handbook:///refunds.md".into(), ..Default::default() };
        let seen = app.resource(&owner(), &query).unwrap();
        assert_eq!((seen.chunks.len(), seen.item.stale), (2, true));
        assert_eq!((seen.chunks[1].start_line, seen.chunks[1].heading_path.len()), (4, 1));
        let bot = Caller::of_scope("bot", "test");
        let hidden = ResourceQuery { uri: "wiki://pages/hr/pay".into(), ..Default::default() };
        let code = |caller: &Caller| app.resource(caller, &hidden).map_err(|e| e.detail.code);
        assert!(code(&owner()).is_ok());
        assert_eq!(code(&bot).unwrap_err(), ErrorCode::NotFound);
        let prefix = Some("wiki://pages/".to_owned());
        let query = TreeQuery { server: "wiki".into(), prefix, ..TreeQuery::default() };
        assert_eq!(app.tree(&owner(), &query).unwrap().prefix, "wiki://pages/hr/");
        let seen = app.tree(&bot, &query).unwrap();
        assert!(seen.branches.is_empty() && seen.resources.is_empty(), "{seen:?}");
    }
}
