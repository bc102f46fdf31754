import os

from anthropic import Anthropic

client = Anthropic()
for step in range(20):
    messages = [{"role": "user", "content": f"Step {step}."}]
    with client.messages.stream(model=os.environ["MODEL"], max_tokens=100, messages=messages) as stream:
        stream.get_final_message()
