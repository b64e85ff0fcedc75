"""The agent's part of the composition root: from the governed model and a channel to the store, to the servicer."""

import grpc

from services.inference.adapters.bm25_search import Bm25Search
from services.inference.adapters.store_client import StoreClient
from services.inference.domain.chat import Role
from services.inference.rpc.agent_servicer import AgentServicer
from services.inference.use_cases.answer_questions import AnswerQuestions
from services.inference.use_cases.answer_setup import AgentServices
from services.inference.use_cases.ports import ChatModel
from services.inference.use_cases.tools.embedding_search import EmbeddingSearch


def agent_servicer(
    model: ChatModel, store: grpc.aio.Channel, *, condense_above_chars: int, default_concurrency: int
) -> AgentServicer:
    """AgentService over one governed model and one store; search is by embeddings where an `embed` role is set."""
    client = StoreClient(store)
    search = EmbeddingSearch(model) if model.serves(Role.EMBED) else Bm25Search()
    services = AgentServices(model, client, client, search, condense_above_chars)
    return AgentServicer(AnswerQuestions(services), default_concurrency)
