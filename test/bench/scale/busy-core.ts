/** A program that keeps a core busy with the work of a service, encoding and decoding, until it is killed. */
const text = JSON.stringify(
  Array.from({ length: 500 }, (_, id) => ({ id: `run-${id}`, text: 'x'.repeat(id % 60) })),
);

function work(): void {
  JSON.stringify(new Map((JSON.parse(text) as { id: string }[]).map((each) => [each.id, each])));
  setImmediate(work);
}

process.send?.('busy');
work();
