// An upstream server of the smuggling tests. Each event is a line of JSON on standard output; the server ends with its
// standard input.
'use strict';
const http = require('http');
const tell = (event) => process.stdout.write(JSON.stringify(event) + '\n');

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('error', () => {});
  request.on('end', () => {
    if (!request.complete) return;
    tell({request: `${request.method} ${request.url} ${Buffer.concat(chunks).toString('latin1')}`, host: request.headers.host});
    response.end('hi');
  });
});
server.on('connection', (socket) => {
  tell({open: 1});
  socket.on('error', () => {});
  socket.on('close', () => tell({open: -1}));
});
server.on('clientError', (error, socket) => socket.destroy());
server.listen(0, '127.0.0.1', () => tell({port: server.address().port}));
process.stdin.on('end', () => process.exit()).resume();
