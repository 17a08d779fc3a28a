//! How things go, at a glance.

use axum::response::Response;
use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::chart::{Line, chart};
use super::{Visit, layout, show};
use crate::serve::api::{SeriesPoint, SeriesResponse, StatusResponse};
use crate::serve::error::ApiError;

const MINUTES: f64 = 120.0;

pub async fn page(visit: Visit) -> Response {
    let body = shown(&visit).await;
    layout::page_or_error(&visit, visit.words.overview, body)
}

async fn shown(visit: &Visit) -> Result<Markup, ApiError> {
    let words = visit.words;
    let status = visit.ask(|app, caller| app.status(caller)).await?;
    // A scope's visitor doesn't see the daemon's figures.
    let series = match visit.caller.bound {
        None => Some(visit.app.series(&visit.caller)?),
        Some(_) => None,
    };
    Ok(html! {
        div #overview data-every="5" {
            dl.figures.large {
                div { dt { (words.resources) } dd { (show::number(status.index.resources)) } }
                @if visit.caller.bound.is_none() {
                    div { dt { (words.chunks) } dd { (show::number(status.index.chunks)) } }
                    div { dt { (words.index_size) } dd { (show::bytes(status.index.bytes)) } }
                }
                div { dt { (words.uptime) } dd { (show::seconds(status.uptime_s)) } }
                div { dt { (words.version) } dd { (status.version) } }
            }
            (states(visit, &status))
            @if let Some(series) = &series { (charts(visit, series, Utc::now())) }
        }
    })
}

fn states(visit: &Visit, status: &StatusResponse) -> Markup {
    html! {
        ul.plain.states { @for server in &status.servers {
            li { a href={ "/servers#server-" (server.name) } { (show::line(&server.name)) } " " (layout::state(visit, server.state)) }
        } }
    }
}

fn charts(visit: &Visit, series: &SeriesResponse, now: DateTime<Utc>) -> Markup {
    let words = visit.words;
    let line =
        |name: &'static str, class: &'static str, value: &dyn Fn(&SeriesPoint) -> Option<f64>| {
            Line { name, class, points: points(series, now, value) }
        };
    let count = |value: f64| show::number(value as u64);
    let bytes = |value: f64| show::bytes(value as u64);
    let none = words.no_data;
    html! {
        h2 { (words.since) }
        div.charts {
            (chart(words.lag, &[line("p50", "a", &|p| p.lag_p50_ms), line("max", "b", &|p| p.lag_max_ms)], MINUTES, &show::milliseconds, none))
            (chart(words.searches, &[line("", "a", &|p| Some(p.searches as f64))], MINUTES, &count, none))
            (chart(words.latency, &[line("p50", "a", &|p| p.search_p50_ms), line("p99", "b", &|p| p.search_p99_ms)], MINUTES, &show::milliseconds, none))
            (chart(words.resources, &[line("", "a", &|p| p.resources.map(|n| n as f64))], MINUTES, &count, none))
            (chart(words.index_size, &[line("", "a", &|p| p.index_bytes.map(|n| n as f64))], MINUTES, &bytes, none))
        }
        h2 { (words.errors_by_server) }
        @if series.errors.is_empty() { p.hint { (words.no_errors) } }
        @else {
            @let most = series.errors.values().max().copied().unwrap_or(1);
            table.errors { tbody { @for (server, errors) in &series.errors { tr {
                th scope="row" { a href={ "/servers#server-" (server) } { (show::line(server)) } }
                td { meter min="0" max=(most) value=(errors) aria-label=(show::line(server)) {} }
                td.number { (show::number(*errors)) }
            } } } }
        }
    }
}

fn points(
    series: &SeriesResponse,
    now: DateTime<Utc>,
    value: &dyn Fn(&SeriesPoint) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let ago = |point: &SeriesPoint| (now - point.at).num_seconds() as f64 / 60.0;
    let known = series.points.iter().filter_map(|point| Some((ago(point), value(point)?)));
    known.filter(|(ago, _)| (0.0..=MINUTES).contains(ago)).collect()
}
