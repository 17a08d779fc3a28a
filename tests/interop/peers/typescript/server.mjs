// A server on the TypeScript SDK that pushes `updated` and `list_changed` in both eras.
//
//   server.mjs FOLDER [PORT]      stdio, or Streamable HTTP on this port of the loopback address
//
// Its notes stand in FOLDER/notes.json, `[{"uri", "title", "text"}]`, which is read again at each
// request. Those at `notes://` are listed, another one replaces the text of a template's URI. A push
// is asked for on the socket FOLDER/control.sock, one line each, answered with `ok` when it has been
// sent: `updated URI` or `list_changed`.

import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import {
    createMcpHandler,
    isLegacyRequest,
    McpServer,
    ResourceNotFoundError,
    ResourceTemplate
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';

const [folder, port] = process.argv.slice(2);
const written = () => JSON.parse(readFileSync(join(folder, 'notes.json'), 'utf8'));
const notes = () => written().filter(note => note.uri.startsWith('notes://'));
const find = uri => written().find(note => note.uri === uri.href);

const DESIGNS = {
    ledger: {
        v3: '# 总账设计\n\n每笔分录必须借贷平衡,冲正只能追加反向分录,不得修改原记录。\n',
        '2025/rc1': '# 总账设计\n\n候选版本引入多币种折算,汇率取自每日收盘价。\n'
    },
    gateway: { v1: '# 网关设计\n\n限流采用令牌桶,超限请求返回四二九并附带重试时间。\n' }
};

// Instances of a connection that lasts: stdio, and legacy HTTP sessions.
const connected = new Set();

function create() {
    const server = new McpServer(
        { name: 'typescript', version: '1.0.0' },
        { capabilities: { resources: { subscribe: true, listChanged: true } } }
    );

    server.registerResource(
        'runbook',
        'runbook://failover',
        { title: 'Failover runbook', mimeType: 'text/markdown' },
        async uri => ({
            contents: [
                { uri: uri.href, mimeType: 'text/markdown', text: '# Failover\n\nPromote the replica in Tallinn, then drain the old primary.\n' }
            ]
        })
    );

    server.registerResource(
        'note',
        new ResourceTemplate('notes://{name}', {
            list: async () => ({
                resources: notes().map(note => ({ uri: note.uri, name: note.title, title: note.title, mimeType: 'text/markdown' }))
            })
        }),
        { title: 'A note' },
        async uri => {
            const note = find(uri);
            if (!note) throw new ResourceNotFoundError(uri.href);
            return { contents: [{ uri: uri.href, mimeType: 'text/markdown', text: note.text }] };
        }
    );

    server.registerResource(
        'design',
        new ResourceTemplate('design://docs/{docId}/{+version}', {
            list: undefined,
            complete: {
                docId: value => Object.keys(DESIGNS).filter(id => id.startsWith(value)),
                version: (value, context) =>
                    Object.keys(DESIGNS[context?.arguments?.docId] ?? {}).filter(version => version.startsWith(value))
            }
        }),
        { title: '设计文档', mimeType: 'text/markdown' },
        async (uri, { docId, version }) => {
            const text = find(uri)?.text ?? DESIGNS[docId]?.[version];
            if (!text) throw new ResourceNotFoundError(uri.href);
            return { contents: [{ uri: uri.href, mimeType: 'text/markdown', text }] };
        }
    );

    // The legacy era's subscriptions; in the modern one the SDK serves `subscriptions/listen` itself.
    const subscribed = new Set();
    server.server.setRequestHandler('resources/subscribe', async ({ params }) => (subscribed.add(params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', async ({ params }) => (subscribed.delete(params.uri), {}));
    return { server, subscribed };
}

function lasting(era) {
    const instance = { ...create(), era };
    connected.add(instance);
    instance.server.server.onclose = () => connected.delete(instance);
    return instance.server;
}

let notifier; // of the modern era over HTTP

if (port === undefined) {
    serveStdio(({ era }) => lasting(era));
} else {
    const modern = createMcpHandler(() => create().server, { legacy: 'reject' });
    const serveModern = toNodeHandler(modern);
    notifier = modern.notify;
    const sessions = new Map();

    async function serveLegacy(request, response, body) {
        const known = sessions.get(request.headers['mcp-session-id']);
        if (known) return known.handleRequest(request, response, body);
        if (request.headers['mcp-session-id']) {
            response.writeHead(404).end();
            return;
        }
        const transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: id => void sessions.set(id, transport),
            onsessionclosed: id => void sessions.delete(id)
        });
        await lasting('legacy').connect(transport);
        await transport.handleRequest(request, response, body);
    }

    createHttpServer(async (request, response) => {
        const chunks = [];
        for await (const chunk of request) chunks.push(chunk);
        const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
        if (await isLegacyRequest(await toWebRequest(request, body), body)) await serveLegacy(request, response, body);
        else await serveModern(request, response, body);
    }).listen(Number(port), '127.0.0.1');
}

async function push(command, uri) {
    if (command === 'updated') {
        notifier?.resourceUpdated(uri);
        for (const { server, subscribed, era } of connected)
            if (era === 'modern' || subscribed.has(uri)) await server.server.sendResourceUpdated({ uri });
    } else {
        notifier?.resourcesChanged();
        for (const { server } of connected) await server.server.sendResourceListChanged();
    }
}

const own = join(folder, `control.${process.pid}`);
createSocketServer(async socket => {
    for await (const line of createInterface({ input: socket })) {
        const [command, uri] = line.split(' ');
        await push(command, uri);
        socket.write('ok\n');
    }
}).listen(own, () => renameSync(own, join(folder, 'control.sock')));
// Stdio ends the process by its end of file; the control socket must not keep it.
if (port === undefined) process.stdin.on('end', () => process.exit(0)).on('close', () => process.exit(0));
