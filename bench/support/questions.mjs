// Prompts for comparing the built-in model's answers with those of another server.

/** Fifty prompts: known and unknown tasks, from one prefill chunk to many. */
export function questions() {
  const names = ['Ada', 'Grace', 'Linus', 'Mia', 'Omar', 'Yuki']
  const colours = ['red', 'green', 'blue', 'yellow', 'white']
  const facts = (count) =>
    Array.from(
      { length: count },
      (_, index) => `The box of ${names[index % 6]} number ${index} is ${colours[(index * 7) % 5]}.`,
    ).join(' ')
  const terms = ['a token', 'a prompt', 'quantization', 'a context window', 'temperature', 'a GGUF file']
  const sums = ['3 + 4', '17 + 25', '48 + 51', '99 + 1', '60 + 38', '12 + 12']
  return [
    ...['Hello', 'Who are you?', 'Thank you!', 'What can you do?', 'Good morning', 'What is your name?'],
    ...[...terms, ...sums].map((what) => `What is ${what}?`),
    ...names.map((name) => `Tell me a short story about ${name}.`),
    ...['apple', 'river', 'lantern', 'zebra'].map((word) => `Spell the word ${word}.`),
    ...['Name the days of the week.', 'Name the months of the year.', 'Count from 1 to 10.'],
    ...['Why is the sky blue?', 'Écris une phrase.', '你好', 'A haiku about autumn 🍂', '{"a": [1, 2', '   '],
    'I love this wonderful little garden. Is this positive or negative?',
    ...[1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 60, 80].map(
      (count) => `${facts(count)} What colour is the box of ${names[(count - 1) % 6]} number ${count - 1}?`,
    ),
  ]
}
