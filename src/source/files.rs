//! A folder as an MCP resource server of our own.

use std::path::PathBuf;

pub struct FilesServer {}

impl FilesServer {
    pub fn new(root: PathBuf, name: &str) -> Self {
        let _ = (root, name);
        Self {}
    }
}

pub async fn serve(server: FilesServer, stream: tokio::io::DuplexStream) {
    let _ = (server, stream);
}
