//! What the pages say, in each language beside the other.

use http::{HeaderMap, header};

use super::session;

/// The cookie in which the chosen language is kept.
pub const COOKIE: &str = "resdex_lang";

macro_rules! words {
    ($($name:ident: $en:literal, $zh:literal;)*) => {
        /// Every text of the console in one language.
        #[derive(Debug)]
        pub struct Words { $(pub $name: &'static str,)* }
        pub static ENGLISH: Words = Words { $($name: $en,)* };
        pub static CHINESE: Words = Words { $($name: $zh,)* };
        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $en, $zh),)*];
    };
}

words! {
    lang: "en", "zh-Hans";
    other_lang: "zh", "en";
    other_lang_tag: "zh-Hans", "en";
    other_lang_name: "中文", "English";
    skip_to_content: "Skip to the content", "跳到正文";
    navigation: "Main", "主导航";
    signed_in_as: "signed in to", "已登录到";
    sign_out: "Sign out", "退出登录";
    sign_in: "Sign in", "登录";
    sign_in_help: "Run `resdex console` in a terminal to sign in as the daemon's owner, or enter a scope's token to see what that scope sees.", "在终端运行 `resdex console` 以守护进程所有者身份登录，或输入某个范围的令牌，查看该范围能看到的内容。";
    token: "Token", "令牌";
    wrong_token: "No scope has this token.", "没有任何范围使用这个令牌。";
    link_used: "This link was used already, or is too old. `resdex console` makes another one.", "此链接已被使用或已过期。请运行 `resdex console` 重新生成。";
    welcome: "Signed in. Going on…", "已登录，正在跳转……";
    go_on: "Go on", "继续";
    error: "That didn't work", "操作未成功";

    nothing_here: "There is no such page.", "没有这个页面。";

    search: "Search", "搜索";
    servers: "Servers", "服务器";
    resources: "Resources", "资源";
    templates: "Templates", "模板";
    scopes: "Scopes", "范围";
    trace: "Trace", "访问记录";
    overview: "Overview", "概览";

    search_label: "Search in everything", "搜索全部内容";
    search_hint: "Words in any language, \"a phrase\", -without, server:, mime:, uri:", "任意语言的词语、\"短语\"、-排除、server:、mime:、uri:";
    filters: "Filters", "筛选";
    server: "Server", "服务器";
    all_servers: "All servers", "全部服务器";
    mime_type: "MIME type", "MIME 类型";
    all_types: "All types", "全部类型";
    scope: "Scope", "范围";
    no_scope: "Everything", "全部";
    found_nothing: "Nothing was found.", "没有找到任何内容。";
    found_nothing_help: "Fewer or other words may help; the list of resources shows what is indexed, and why something is not.", "可以减少或更换词语；资源列表显示已索引的内容，以及未索引的原因。";
    results: "Results", "结果";
    took: "took", "用时";
    next_hits: "Further results", "更多结果";
    previous_hits: "Earlier results", "上一页结果";
    relevance: "Relevance", "相关度";
    stale: "stale", "过时";
    stale_help: "This text is older than a read that failed", "此文本早于一次失败的读取";
    by_name: "found by its name", "按名称找到";
    lines: "lines", "行";
    page: "page", "页";
    same_text: "The same text", "相同文本";
    what_would_a_bot_get: "What would a bot get?", "机器人会得到什么？";
    start: "Type a question. What answers it comes from the servers that this daemon follows.", "输入问题。答案来自本守护进程所跟踪的服务器。";
    known: "resources are indexed", "个资源已索引";

    question: "Question", "问题";
    max_tokens: "Most tokens", "令牌数上限";
    conversation: "Conversation", "会话";
    optional: "optional", "可选";
    ask: "Show", "显示";
    tokens: "tokens", "令牌";
    citations: "Citations", "引用";
    the_prompt: "What goes into the prompt", "放入提示词的内容";
    context_help: "The question as a bot asks it: pins first, then the best passages, packed into the budget.", "按机器人的方式提问：先放入固定资源，再放入最佳段落，直到用完预算。";
    empty_context: "Nothing would go into the prompt.", "提示词中不会放入任何内容。";
    copy: "Copy", "复制";
    copied: "Copied", "已复制";

    protocol: "Protocol", "协议";
    push: "Push", "推送";
    no_push: "none: by schedule", "无：按计划检查";
    listed: "Listed", "已列出";
    indexed: "Indexed", "已索引";
    skipped: "By name only", "仅按名称";
    stale_count: "Stale", "过时";
    last_sync: "Last sync", "上次同步";
    next_sync: "Next sync", "下次同步";
    last_error: "Last error", "上次错误";
    what_to_do: "What to do", "处理办法";
    warnings: "Warnings", "警告";
    sync_now: "Sync now", "立即同步";
    sync_all: "Sync all now", "立即全部同步";
    never: "never", "从未";
    progress: "Progress", "进度";
    withheld: "withheld removals", "项删除待确认";
    withheld_help: "The server no longer lists these resources. So many at once may be a mistake of the server's, so they stay searchable until a second listing agrees, or you confirm.", "服务器不再列出这些资源。一次消失这么多可能是服务器出错，因此在第二次列出确认或您手动确认之前，它们仍可搜索。";
    look_at_them: "Look at them", "查看";
    confirm_removal: "Remove them now", "立即删除";
    nothing_withheld: "No removal waits for a confirmation.", "没有等待确认的删除。";
    notifications: "Notifications", "通知";
    reads: "Reads", "读取";
    failures: "failed", "失败";
    no_servers: "No server is configured.", "尚未配置服务器。";
    paused: "Writing is paused", "写入已暂停";
    config_error: "The changed config isn't in force", "修改后的配置未生效";

    state_connecting: "connecting", "连接中";
    state_listing: "listing", "列出中";
    state_syncing: "syncing", "同步中";
    state_live: "live", "实时";
    state_no_listing: "no listing", "不支持列出";
    state_backoff: "waiting to retry", "等待重试";
    state_failed: "failed", "失败";
    state_needs_config: "needs config", "需要配置";
    state_needs_auth: "needs sign-in", "需要认证";
    state_disabled: "disabled", "已停用";

    filter_resources: "Filter by URI", "按 URI 筛选";
    filter: "Filter", "筛选";
    only_skipped: "Only those found by name", "仅显示按名称找到的";
    title: "Title", "标题";
    uri: "URI", "URI";
    mime: "Type", "类型";
    size: "Size", "大小";
    outcome: "Outcome", "结果";
    indexed_at: "Indexed", "索引时间";
    tree: "Tree of resources", "资源树";
    more: "More", "更多";
    no_resources: "There are no resources here.", "这里没有资源。";
    open: "Open", "打开";

    preview: "Preview", "预览";
    text: "Text", "文本";
    chunks: "Chunks", "分块";
    history: "History", "历史";
    origin: "Origin", "来源";
    listed_by_server: "listed by the server", "由服务器列出";
    from_template: "from the template", "来自模板";
    why_skipped: "Why it has no text", "为何没有文本";
    modified: "Modified", "修改时间";
    no_preview: "There is nothing to show of this type.", "此类型无法预览。";
    no_text: "There is no text in the index.", "索引中没有文本。";
    truncated: "The text goes on.", "文本未完。";
    go_on_reading: "Read on", "继续阅读";
    part: "part", "部分";
    changes: "Changes", "变更";
    changes_help: "Since the daemon's start", "自守护进程启动以来";
    no_changes: "Nothing has changed since the daemon's start.", "自守护进程启动以来没有变更。";
    reads_by: "Reads", "读取记录";
    no_reads: "Nobody has read it lately.", "近期无人读取。";
    kind_indexed: "changed and indexed", "已变更并索引";
    kind_removed: "removed", "已删除";
    pin: "Pin", "固定";
    pin_help: "A pin always goes into the context of its scope or conversation.", "固定的资源总会放入该范围或会话的上下文。";
    content_of: "Preview of the document", "文档预览";

    expanded: "followed expansions", "个已跟踪的展开";
    no_templates: "No server has templates.", "没有服务器提供模板。";
    index_this: "Index this", "索引此资源";
    index_this_help: "It is followed from now on like any other resource.", "此后将像其他资源一样持续跟踪。";
    followed: "It is followed.", "已在跟踪。";
    forget: "Follow no longer", "停止跟踪";
    values_from_server: "Suggestions come from the server", "建议来自服务器";

    no_scopes: "There are no scopes. A scope in the config says what a bot may see:", "尚无范围。配置中的范围决定机器人能看到什么：";
    sees: "Sees", "可见";
    sees_all_servers: "all servers", "全部服务器";
    include: "Only", "仅限";
    exclude: "Without", "排除";
    types: "Types", "类型";
    budget: "Budget", "预算";
    no_budget: "no limit", "无限制";
    pins: "Pins", "固定资源";
    no_pins: "nothing is pinned", "没有固定资源";
    pin_config: "from the config", "来自配置";
    pin_added: "added at run time", "运行时添加";
    pin_conversation: "conversation's", "会话";
    remove: "Remove", "移除";
    has_token: "has a token", "已有令牌";
    no_token: "no token", "无令牌";
    new_token: "New token", "新令牌";
    token_once: "This token is shown once. Give it to the bot, and put the line below into the config; the hash is all that is kept.", "此令牌只显示一次。请交给机器人，并将下面一行写入配置；系统只保存哈希。";
    config_line: "Line of the config", "配置行";
    see_as: "See its resources", "查看其资源";
    everything_unscoped: "Outside of scopes", "不属于任何范围";

    when: "When", "时间";
    who: "Who", "谁";
    what: "What", "操作";
    found: "Resources", "资源";
    duration: "Took", "用时";
    no_trace: "Nothing was asked yet.", "尚无记录。";
    verb_search: "searched", "搜索";
    verb_context: "asked for a context", "请求上下文";
    verb_read: "read", "读取";
    entries: "Entries", "条数";
    others: "others", "其他";

    lag: "From notification to searchable", "从通知到可搜索";
    searches: "Searches a minute", "每分钟搜索次数";
    latency: "Latency of searches", "搜索延迟";
    index_size: "Index on disk", "索引磁盘占用";
    errors_by_server: "Errors by server", "各服务器错误数";
    no_errors: "No errors.", "没有错误。";
    uptime: "Up for", "已运行";
    version: "Version", "版本";
    since: "The last two hours", "最近两小时";
    no_data: "no data yet", "暂无数据";
}

impl Words {
    /// By the reader's choice, else by what the browser prefers.
    pub fn of(headers: &HeaderMap) -> &'static Self {
        match session::value(headers, COOKIE) {
            Some("zh") => return &CHINESE,
            Some("en") => return &ENGLISH,
            _ => {}
        }
        let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        match prefers_chinese(accepted.unwrap_or_default()) {
            true => &CHINESE,
            false => &ENGLISH,
        }
    }
}

/// Whether Chinese stands before English in an `Accept-Language` (RFC 9110, 12.5.4).
fn prefers_chinese(accepted: &str) -> bool {
    let weight_of = |language: &str| {
        let weights = accepted.split(',').filter_map(|item| {
            let (range, parameters) = item.split_once(';').unwrap_or((item, ""));
            let primary = range.trim().split('-').next().unwrap_or_default();
            let weight = parameters.trim().strip_prefix("q=");
            let weight = weight.map_or(Some(1.0), |weight| weight.trim().parse::<f32>().ok())?;
            primary.eq_ignore_ascii_case(language).then_some(weight)
        });
        weights.fold(0.0, f32::max)
    };
    let place_of = |language: &str| accepted.to_ascii_lowercase().find(language);
    let (chinese, english) = (weight_of("zh"), weight_of("en"));
    chinese > english
        || (chinese > 0.0
            && (chinese - english).abs() < f32::EPSILON
            && place_of("zh") < place_of("en"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_is_asked_for_its_language() {
        for (accepted, chinese) in [
            ("", false),
            ("zh-CN,zh;q=0.9,en;q=0.8", true),
            ("en-GB,en;q=0.9,zh;q=0.8", false),
            ("zh-Hant, en", true),
            ("en, zh", false),
            ("de, fr;q=0.5", false),
            ("de, zh;q=0.2", true),
            ("zh;q=0", false),
            ("zh;q=x", false),
            ("*", false),
        ] {
            assert_eq!(prefers_chinese(accepted), chinese, "{accepted}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("accept-language", "zh".parse().unwrap());
        assert_eq!(Words::of(&headers).lang, "zh-Hans");
        headers.insert("cookie", "resdex_lang=en".parse().unwrap());
        assert_eq!(Words::of(&headers).lang, "en");
    }

    #[test]
    fn every_text_is_said_in_both_languages() {
        let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        for (name, english, chinese) in ALL {
            let same = ["lang", "other_lang", "other_lang_tag", "other_lang_name", "uri"];
            if !same.contains(name) {
                assert!(!english.contains(is_han) && !english.is_empty(), "{name}: {english}");
                assert!(chinese.contains(is_han), "{name}: {chinese}");
            }
        }
    }
}
