//! The one writer: takes changes from all servers, batches them, commits, and acknowledges.
