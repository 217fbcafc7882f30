// Prints what each URL answers, by fetch and by http.get or https.get as its scheme has it.
const http = require('http'), https = require('https');

const get = (url) => new Promise((resolve, reject) => {
  (url.startsWith('https:') ? https : http).get(url, (answer) => {
    let body = '';
    answer.on('data', (part) => { body += part; });
    answer.on('end', () => (answer.statusCode === 200 ? resolve(body) : reject(new Error(`${url}: ${answer.statusCode}`))));
  }).on('error', reject);
});

const fetched = async (url) => {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.text();
};

const ways = { fetch: fetched, get };

(async () => {
  const [way, ...urls] = process.argv.slice(2);
  for (const url of urls) console.log(way, await ways[way](url));
})().catch((err) => { console.error(err); process.exit(1); });
