import os

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


@tool
def look(ticket: str) -> str:
    """Reads the ticket."""
    return "The ticket is open."


agent = create_react_agent(ChatOpenAI(model=os.environ["MODEL"]), [look])
agent.invoke({"messages": [("user", "Answer ticket 4711.")]}, {"recursion_limit": 50})
