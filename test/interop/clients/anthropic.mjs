import Anthropic from '@anthropic-ai/sdk';

const anthropic = new Anthropic();
for (let step = 0; step < 20; step += 1) {
  const messages = [{ role: 'user', content: `Step ${step}.` }];
  await anthropic.messages.create({ model: process.env.MODEL, max_tokens: 100, messages });
}
