// Prints what each URL answers: by fetch, by http.get or https.get as its scheme has it, or by https.get with an agent that asks
// the proxy of HTTPS_PROXY for a tunnel. TOKEN, where it is set, is sent as a bearer token.
const http = require('http'), https = require('https'), tls = require('tls');

const headers = process.env.TOKEN ? { authorization: `Bearer ${process.env.TOKEN}` } : {};

const getBy = (agent) => (url) => new Promise((resolve, reject) => {
  (url.startsWith('https:') ? https : http).get(url, { headers, agent }, (answer) => {
    let body = '';
    answer.on('data', (part) => { body += part; });
    answer.on('end', () => (answer.statusCode === 200 ? resolve(body) : reject(new Error(`${url}: ${answer.statusCode}`))));
  }).on('error', reject);
});

const tunnels = () => {
  const proxy = new URL(process.env.HTTPS_PROXY);
  const agent = new https.Agent();
  agent.createConnection = ({ host, port }, done) => {
    const credentials = Buffer.from(decodeURIComponent(`${proxy.username}:${proxy.password}`)).toString('base64');
    http.request({
      host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: `${host}:${port}`,
      headers: { 'proxy-authorization': `Basic ${credentials}` },
    }).on('connect', (answer, socket) => {
      if (answer.statusCode === 200) done(null, tls.connect({ socket, servername: host }));
      else done(new Error(`the proxy answers ${answer.statusCode}`));
    }).on('error', done).end();
  };
  return agent;
};

const fetched = async (url) => {
  const answer = await fetch(url, { headers });
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.text();
};

const ways = { fetch: () => fetched, get: () => getBy(), tunnel: () => getBy(tunnels()) };

(async () => {
  const [way, ...urls] = process.argv.slice(2);
  const get = ways[way]();
  for (const url of urls) console.log(way, await get(url));
})().catch((err) => { console.error(err); process.exit(1); });
