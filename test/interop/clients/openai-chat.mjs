import OpenAI from 'openai';

const openai = new OpenAI();
for (let step = 0; step < 20; step += 1) {
  const messages = [{ role: 'user', content: `Step ${step}.` }];
  await openai.chat.completions.create({ model: process.env.MODEL, messages });
}
