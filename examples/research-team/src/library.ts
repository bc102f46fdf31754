const DOCUMENTS: Readonly<Record<string, string>> = {
  'mills-of-the-estuary': [
    'Tidal mills stood on the estuaries of the Atlantic coast from the eleventh century on. A dam',
    'with gates closed a pond at high water; at low water the pond drove the wheel for some hours.',
    'Most ground grain; they were given up when steam and roller mills came, around 1900.',
  ].join(' '),
  'yield-of-a-tidal-mill': [
    'A mill with a pond of one hectare and a head of 1.5 metres worked about two hours a tide. Its',
    'wheel gave some 6 kilowatts, enough for 150 kilograms of flour an hour, or 600 kilograms a day.',
  ].join(' '),
  'windmills-inland': 'Inland, where there was no tide, wind did the same work when it blew.',
};

/** Names of the documents that contain any of the words, best match first. */
export function findDocuments(words: string): string[] {
  const wanted = words.toLowerCase().split(/\W+/).filter(Boolean);
  const scored = Object.entries(DOCUMENTS).map(([name, text]) => {
    const content = `${name} ${text}`.toLowerCase();
    return { name, hits: wanted.filter((word) => content.includes(word)).length };
  });
  return scored
    .filter(({ hits }) => hits > 0)
    .sort((one, other) => other.hits - one.hits || one.name.localeCompare(other.name))
    .map(({ name }) => name);
}

/** A document's text; undefined when it does not exist. */
export function readDocument(name: string): string | undefined {
  return Object.hasOwn(DOCUMENTS, name) ? DOCUMENTS[name] : undefined;
}
