import os

from openai import OpenAI

client = OpenAI()
for step in range(20):
    messages = [{"role": "user", "content": f"Step {step}."}]
    client.chat.completions.create(model=os.environ["MODEL"], messages=messages)
